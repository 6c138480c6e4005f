//! The SQL statements for schedules, as functions.

use relq_core::{
    environment::Timestamp,
    schedule::{Schedule, ScheduleName},
};
use rusqlite::params;

use super::sql;
use crate::failure::Failure;
use crate::store::Store;

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

    /// Stores a schedule whose last tick is the present.
    pub(crate) fn put_schedule(
        &self,
        name: &ScheduleName,
        definition: &[u8],
    ) -> Result<(), Failure> {
        let params = params![self.queue, name.as_str(), definition, self.now_ms()];
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

    /// Up to `most` schedules whose names come after `last`, in the order of the names.
    pub(crate) fn schedule_page(
        &self,
        last: Option<&ScheduleName>,
        most: u32,
    ) -> Result<Vec<Schedule>, Failure> {
        let params = params![self.queue, last.map_or("", ScheduleName::as_str), most];
        let rows = self.list(sql!("schedule_page"), params, |row| {
            Ok((row.get::<_, String>(0)?, row.get::<_, Vec<u8>>(1)?, row.get(2)?))
        })?;
        let schedule = |(name, definition, last_tick): (String, Vec<u8>, i64)| {
            let name = ScheduleName::new(name).map_err(|error| {
                Failure::unusable(format!("a schedule is damaged: {error}"))
            })?;
            let last_tick = Timestamp::from_unix_ms(last_tick);
            Ok(Schedule::new(name, definition.into(), last_tick))
        };
        rows.into_iter().map(schedule).collect()
    }
}
