//! The SQL statements for schedules, as functions.

use relq_core::{
    environment::Timestamp,
    schedule::{Schedule, ScheduleName},
};
use rusqlite::{
    params,
    types::{ToSqlOutput, ValueRef},
};

use super::sql;
use crate::failure::Failure;
use crate::store::Store;

/// A row of the schedules, whose name may be one that relq does not write.
pub(crate) struct Entry {
    pub(crate) name: Vec<u8>,
    definition: Vec<u8>,
    last_tick: Timestamp,
}

impl Store<'_> {
    /// The definition of a schedule and its last tick. `None` if there is none.
    pub(crate) fn find_schedule(
        &self,
        name: &ScheduleName,
    ) -> Result<Option<(Vec<u8>, Timestamp)>, Failure> {
        self.find(sql!("schedule_find"), params![self.queue, name.as_str()], |row| {
            Ok((row.get(0)?, Timestamp::from_unix_ms(row.get(1)?)))
        })
    }

    /// Stores a schedule.
    pub(crate) fn put_schedule(
        &self,
        name: &ScheduleName,
        definition: &[u8],
        last_tick: Timestamp,
    ) -> Result<(), Failure> {
        let last_tick = last_tick.unix_ms();
        let params = params![self.queue, name.as_str(), definition, last_tick];
        self.change(sql!("schedule_put"), params).map(drop)
    }

    pub(crate) fn record_tick(
        &self,
        name: &ScheduleName,
        at: Timestamp,
    ) -> Result<(), Failure> {
        let params = params![self.queue, name.as_str(), at.unix_ms()];
        self.change(sql!("schedule_tick"), params).map(drop)
    }

    pub(crate) fn remove_schedule(&self, name: &ScheduleName) -> Result<bool, Failure> {
        let params = params![self.queue, name.as_str()];
        Ok(self.change(sql!("schedule_remove"), params)? > 0)
    }

    /// Up to `most` entries whose names come after `last`, in the order of the names.
    pub(crate) fn schedule_page(
        &self,
        last: Option<&[u8]>,
        most: u32,
    ) -> Result<Vec<Entry>, Failure> {
        let last = ToSqlOutput::Borrowed(ValueRef::Text(last.unwrap_or_default()));
        self.list(sql!("schedule_page"), params![self.queue, last, most], |row| {
            Ok(Entry {
                name: row.get_ref(0)?.as_bytes()?.to_vec(),
                definition: row.get(1)?,
                last_tick: Timestamp::from_unix_ms(row.get(2)?),
            })
        })
    }
}

impl Entry {
    /// Reads the entry. If it is not a schedule, returns its name and the reason.
    pub(crate) fn schedule(self) -> Result<Schedule, String> {
        let name = String::from_utf8_lossy(&self.name);
        let name =
            ScheduleName::new(&name).map_err(|error| format!("{name:?}: {error}"))?;
        Ok(Schedule::new(name, self.definition.into(), self.last_tick))
    }
}
