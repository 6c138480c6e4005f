//! Measures an operation: the slow log of the server gives its time, and the operating
//! system gives the peak of this process's resident memory.

use std::{fs, time::Duration};

use redis::{FromRedisValue, Value, aio::MultiplexedConnection};

use crate::{
    failure::{CommandResult, Failure},
    meter::failed,
};

/// The server records a command in its slow log if the command takes at least this
/// long.
pub(super) const SHORTEST: Duration = Duration::from_micros(200);

/// Reads the server's slow log around each operation.
pub(super) struct Probe {
    conn: MultiplexedConnection,
    all: Vec<(&'static str, Noted)>,
}

/// The measurements of one operation.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Noted {
    /// The longest time of one command. `None` if all took less than [`SHORTEST`].
    pub(super) longest: Option<Duration>,
    /// By how much the resident memory of this process grew at its peak. `None` if the
    /// operating system does not report it.
    pub(super) client_bytes: Option<u64>,
}

impl Probe {
    /// Configures the server to record slow commands.
    pub(super) async fn start(conn: MultiplexedConnection) -> CommandResult<Self> {
        let probe = Self { conn, all: Vec::new() };
        let shortest = SHORTEST.as_micros().to_string();
        let settings =
            ["slowlog-log-slower-than", &shortest, "slowlog-max-len", "1000000"];
        probe.ask::<()>("CONFIG", &[&["SET"], &settings[..]].concat()).await?;
        Ok(probe)
    }

    /// Runs a part of an operation, and adds its measurements to those of the
    /// operation.
    pub(super) async fn during<T, E>(
        &mut self,
        operation: &'static str,
        calls: impl Future<Output = Result<T, E>>,
    ) -> CommandResult<T>
    where
        Failure: From<E>,
    {
        self.ask::<()>("SLOWLOG", &["RESET"]).await?;
        let before = begin_peak();
        let result = calls.await?;
        let client_bytes =
            before.and_then(|before| Some(peak()?.saturating_sub(before)));
        let longest = self.longest().await?;
        let noted = match self.all.iter_mut().find(|(name, _)| *name == operation) {
            Some((_, noted)) => noted,
            None => {
                self.all.push((operation, Noted::default()));
                &mut self.all.last_mut().expect("it was pushed").1
            }
        };
        noted.longest = noted.longest.max(longest);
        noted.client_bytes = noted.client_bytes.max(client_bytes);
        Ok(result)
    }

    /// Returns the names of the operations with their measurements, in the order in
    /// which they ran.
    pub(super) fn noted(self) -> Vec<(&'static str, Noted)> {
        self.all
    }

    async fn longest(&self) -> CommandResult<Option<Duration>> {
        let entries: Vec<Vec<Value>> = self.ask("SLOWLOG", &["GET", "-1"]).await?;
        // A slow log entry is an id, a time, a duration in microseconds, and more.
        let took = entries.iter().filter_map(|entry| entry.get(2));
        let took = took.filter_map(|took| u64::from_redis_value_ref(took).ok());
        Ok(took.max().map(Duration::from_micros))
    }

    async fn ask<T: FromRedisValue>(
        &self,
        command: &str,
        arguments: &[&str],
    ) -> CommandResult<T> {
        let mut ask = redis::cmd(command);
        ask.arg(arguments);
        ask.query_async(&mut self.conn.clone()).await.map_err(|error| failed(&error))
    }
}

/// Resets the peak of this process's resident memory, and returns the present size in
/// bytes.
fn begin_peak() -> Option<u64> {
    fs::write("/proc/self/clear_refs", "5").ok()?;
    status("VmRSS:")
}

/// Returns the peak of this process's resident memory, in bytes.
fn peak() -> Option<u64> {
    status("VmHWM:")
}

fn status(field: &str) -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kibibytes = status.lines().find_map(|line| line.strip_prefix(field))?;
    let kibibytes: u64 = kibibytes.trim().strip_suffix(" kB")?.parse().ok()?;
    Some(kibibytes << 10)
}
