//! The SQL statements that find one job, and that run a scheduled job now, as functions.

use rusqlite::{Row, params};

use super::operating::{Peeked, read_peeked};
use super::sql;
use crate::failure::Failure;
use crate::store::Store;

/// A stored job, with its state in one word.
pub(crate) struct JobRead {
    pub(crate) state: String,
    pub(crate) job: Peeked,
}

/// An ended job whose id is remembered.
pub(crate) struct EndedId {
    pub(crate) was_done: bool,
    /// Until when the id is remembered (ms since the Unix epoch).
    pub(crate) until: i64,
}

/// The columns of a scheduled job that are needed to run it now.
pub(crate) struct ScheduledRow {
    pub(crate) job: i64,
    /// Whether it is a piece of a batch.
    pub(crate) is_piece: bool,
    /// Whether it is held until its leader is done (R30).
    pub(crate) is_held: bool,
    /// The id of the job that it follows. `None` for a job that is not held, or if the
    /// file is damaged.
    pub(crate) leader: Option<String>,
}

impl Store<'_> {
    pub(crate) fn read_job(&self, id: &str) -> Result<Option<JobRead>, Failure> {
        self.find(sql!("job_read"), params![self.queue, id], |row| {
            Ok(JobRead { job: read_peeked(row)?, state: row.get(21)? })
        })
    }

    /// The ids of a job's held followers, in the order of their pushes.
    pub(crate) fn followers_of(&self, leader: &str) -> Result<Vec<String>, Failure> {
        self.list(sql!("follower_list"), params![self.queue, leader], |row| row.get(0))
    }

    pub(crate) fn find_ended(&self, id: &str) -> Result<Option<EndedId>, Failure> {
        let params = params![self.queue, id, self.now_ms()];
        self.find(sql!("ended_find"), params, |row| {
            Ok(EndedId { was_done: row.get(0)?, until: row.get(1)? })
        })
    }

    pub(crate) fn find_scheduled(
        &self,
        id: &str,
    ) -> Result<Option<ScheduledRow>, Failure> {
        self.find(sql!("scheduled_find"), params![self.queue, id], read_scheduled)
    }

    /// Makes a scheduled job, which is not held, ready at the back of the queue. It may
    /// have become ready since it was found, and is then left as it is.
    pub(crate) fn run_now(&self, job: i64, turn: i64) -> Result<(), Failure> {
        self.change(sql!("job_run_now"), params![job, turn, self.now_ms()])?;
        Ok(())
    }
}

fn read_scheduled(row: &Row<'_>) -> rusqlite::Result<ScheduledRow> {
    Ok(ScheduledRow {
        job: row.get(0)?,
        is_piece: row.get::<_, Option<i64>>(1)?.is_some(),
        is_held: row.get(2)?,
        leader: row.get(3)?,
    })
}
