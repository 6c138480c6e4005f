//! Schedules: a hash of definitions and last ticks, and the scripts that use it (R28).
//!
//! Only the calls of schedules name the hash, so that a queue without schedules sends no
//! byte for them.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{
    Error, NewJob,
    environment::Timestamp,
    error::Operation,
    outcome::Pushed,
    schedule::{Schedule, ScheduleName, ScheduleStored, Schedules, Tick, Ticked},
};

use super::{Bookkeeping, Scanned, Stores};
use crate::{command, error::unreadable};

/// A stored schedule begins with its last tick, of so many bytes.
const TICK_BYTES: usize = 6;

/// Pushes the job of a tick, and records the tick.
///
/// # Errors
/// [`Error::Invalid`], [`Error::Unsupported`], or the errors of
/// [`Conn::call`](crate::Conn::call).
pub async fn push_tick(
    on: &impl Stores,
    tick: &Tick,
    job: NewJob,
) -> Result<Ticked, Error> {
    on.capabilities().check_tick(&job)?;
    let bookkeeping = on.bookkeeping_for(&[]);
    let jobs = [job];
    let ids = bookkeeping.ids_for(&jobs, None, None);
    let bookkeeping = on.bookkeeping_for(&ids);
    let mut call = bookkeeping
        .with_keys([bookkeeping.keys.schedules.clone()])
        .call(&bookkeeping.scripts.push_tick)
        .arg(tick.name.as_str())
        .arg(&tick.definition[..])
        .arg(tick.at.unix_ms());
    super::push::add_jobs(&mut call, &jobs, &ids);
    let answer = call.run(&bookkeeping.conn, Operation::PushTick).await?;
    let mut parts = answer.parts()?;
    match parts.part().text()?.as_str() {
        "pushed" => {
            let duplicates = parts.part().list()?;
            let pushed = bookkeeping.pushed(Operation::PushTick, ids, duplicates)?;
            let [pushed] = <[Pushed; 1]>::try_from(pushed).expect("one job");
            Ok(Ticked::Pushed(pushed))
        }
        "not later" => Ok(Ticked::NotLater),
        "not due" => Ok(Ticked::NotDue(Duration::from_millis(parts.part().count()?))),
        "changed" => Ok(Ticked::Changed),
        other => Err(bookkeeping.unreadable(Operation::PushTick, other)),
    }
}

impl Bookkeeping {
    /// Stores a schedule, or replaces its definition.
    ///
    /// # Errors
    /// The errors of [`Conn::call`](crate::Conn::call). All calls here have these errors.
    pub async fn put_schedule(
        &self,
        name: &ScheduleName,
        definition: &[u8],
    ) -> Result<ScheduleStored, Error> {
        let call = self.scripts.put_schedule.keys(&[&self.keys.schedules]);
        let call = call.arg(name.as_str()).arg(definition);
        let answer = call.run(&self.conn, Operation::PutSchedule).await?;
        match answer.text()?.as_str() {
            "created" => Ok(ScheduleStored::Created),
            "replaced" => Ok(ScheduleStored::Replaced),
            "unchanged" => Ok(ScheduleStored::Unchanged),
            other => Err(self.unreadable(Operation::PutSchedule, other)),
        }
    }

    /// Removes a schedule. Returns whether there was one.
    ///
    /// # Errors
    /// See [`put_schedule`](Self::put_schedule).
    pub async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool, Error> {
        let mut cmd = command("HDEL");
        cmd.arg(&self.keys.schedules).arg(name.as_str());
        let removed = self.conn.call(Operation::RemoveSchedule, &cmd).await?;
        Ok(removed.count()? > 0)
    }

    /// All schedules, and the server's time. A field that is not a schedule does not keep
    /// the others from being read.
    ///
    /// # Errors
    /// See [`put_schedule`](Self::put_schedule).
    pub async fn schedules(&self) -> Result<Schedules, Error> {
        let (mut found, mut unreadable) = (Vec::new(), Vec::new());
        let (read, key) = (Operation::ReadSchedules, &self.keys.schedules);
        let mut pages = self.scan_pages_for(read, Scanned::Hash, key);
        while let Some(page) = pages.next_page().await? {
            for (name, stored) in page {
                match schedule(&name, &stored) {
                    Ok(schedule) => found.push(schedule),
                    Err(what) => unreadable.push(what),
                }
            }
        }
        let now = self.read_time(read).await?;
        Ok(Schedules::new(now, found).with_unreadable(unreadable))
    }

    /// Reads the server's clock. The estimate of the connection would not follow when
    /// that clock is set.
    pub(super) async fn read_time(
        &self,
        operation: Operation,
    ) -> Result<Timestamp, Error> {
        let mut parts = self.conn.call(operation, &command("TIME")).await?.parts()?;
        let (seconds, micros) = (parts.part().number()?, parts.part().number()?);
        Ok(Timestamp::from_unix_ms(seconds.saturating_mul(1000) + micros / 1000))
    }

    fn unreadable(&self, operation: Operation, found: &str) -> Error {
        unreadable(self.conn.at(operation), format!("{found:?} is no schedule's"))
    }
}

/// Reads a field of the hash. If it is not a schedule, returns its name and the reason.
fn schedule(name: &Bytes, stored: &Bytes) -> Result<Schedule, String> {
    let name = String::from_utf8_lossy(name);
    let tick = stored.get(..TICK_BYTES).ok_or_else(|| {
        format!("{name:?}: a value of {} bytes has no last tick", stored.len())
    })?;
    let ms = tick.iter().fold(0, |ms, byte| ms << 8 | i64::from(*byte));
    let last_tick = Timestamp::from_unix_ms(ms);
    let name =
        ScheduleName::new(&name).map_err(|error| format!("{name:?}: {error}"))?;
    Ok(Schedule::new(name, stored.slice(TICK_BYTES..), last_tick))
}
