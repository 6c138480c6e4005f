//! Reads the counters of a Redis server before and after a workload.

use std::collections::HashMap;

use redis::aio::MultiplexedConnection;

use crate::{
    failure::{CommandResult, Failure},
    sample::count,
    spent::Spent,
};

/// A connection that is used only to read the counters of a Redis server.
#[derive(Debug, Clone)]
pub(crate) struct Meter {
    conn: MultiplexedConnection,
}

/// The values of the counters at one moment.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Reading {
    commands: u64,
    reads: u64,
    bytes: u64,
    cpu_us: f64,
    memory: u64,
}

impl Meter {
    pub(crate) fn new(conn: MultiplexedConnection) -> Self {
        Self { conn }
    }

    pub(crate) async fn read(&self) -> CommandResult<Reading> {
        let info: String = redis::cmd("INFO")
            .arg("everything")
            .query_async(&mut self.conn.clone())
            .await
            .map_err(|error| failed(&error))?;
        Ok(Reading::of(&info))
    }

    /// Returns what the server spent since `before`. The command that reads the
    /// counters is not counted.
    pub(crate) async fn since(&self, before: Reading) -> CommandResult<Spent> {
        let after = self.read().await?;
        Ok(Spent {
            commands: (after.commands - before.commands).saturating_sub(1),
            reads: (after.reads - before.reads).saturating_sub(1),
            bytes: after.bytes - before.bytes,
            cpu_us: after.cpu_us - before.cpu_us,
            memory: count(after.memory) - count(before.memory),
        })
    }
}

impl Reading {
    fn of(info: &str) -> Self {
        let lines = info.lines().filter_map(|line| line.split_once(':'));
        let fields: HashMap<_, _> = lines.collect();
        let text = |name: &str| fields.get(name).copied().unwrap_or_default();
        let number = |name: &str| text(name).parse::<u64>().unwrap_or(0);
        let seconds = |name: &str| text(name).parse::<f64>().unwrap_or(0.0);
        Self {
            commands: number("total_commands_processed"),
            reads: number("total_reads_processed"),
            bytes: number("total_net_input_bytes") + number("total_net_output_bytes"),
            cpu_us: (seconds("used_cpu_user") + seconds("used_cpu_sys")) * 1e6,
            memory: number("used_memory"),
        }
    }
}

/// The failure of a command that the benchmark itself sent.
pub(crate) fn failed(error: &redis::RedisError) -> Failure {
    Failure::Failed(format!("a command of the benchmark failed: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_counters_are_found_in_what_the_server_says() {
        let reading = Reading::of(
            "# Stats\r\ntotal_commands_processed:7\r\ntotal_reads_processed:5\r\n\
             total_net_input_bytes:100\r\ntotal_net_output_bytes:23\r\n\
             # CPU\r\nused_cpu_user:0.5\r\nused_cpu_sys:0.25\r\n\
             # Memory\r\nused_memory:1024\r\n",
        );
        assert_eq!((reading.commands, reading.reads, reading.bytes), (7, 5, 123));
        assert_eq!((reading.cpu_us, reading.memory), (750_000.0, 1024));
    }
}
