//! The SQL statements that settle, give back, bury or remove jobs, as functions.

use rusqlite::params;

use super::results::{End, Remembered};
use super::{rows::sql_for_rows, sql};
use crate::failure::Failure;
use crate::followers::Moved;
use crate::store::Store;

/// The error text of a job that was buried because it expired before its delivery
/// (R17).
pub(crate) const EXPIRED: &str = "expired before it was delivered";

impl Store<'_> {
    /// Removes a job and its body, and remembers how it ended and its id, as far as its
    /// producer asked for it (R4, R29). Returns what it did with its followers.
    pub(crate) fn remove_job(
        &self,
        job: i64,
        remembered: &Remembered,
        end: End<'_>,
    ) -> Result<Moved, Failure> {
        self.remove_jobs(&[job])?;
        self.remember(remembered, end)
    }

    /// Removes jobs and their bodies. The caller remembers how they ended.
    pub(crate) fn remove_jobs(&self, jobs: &[i64]) -> Result<(), Failure> {
        self.change_rows(sql_for_rows!("job_remove", 0), &[], jobs, |job, row| {
            row.add(job)
        })?;
        self.remove_bodies(jobs)
    }

    pub(crate) fn remove_bodies(&self, jobs: &[i64]) -> Result<(), Failure> {
        self.change_rows(sql_for_rows!("body_remove", 0), &[], jobs, |job, row| {
            row.add(job)
        })?;
        Ok(())
    }

    /// Buries a job. If `error` is `None`, the job keeps its last error.
    pub(crate) fn bury(
        &self,
        job: i64,
        reason: &str,
        error: Option<&str>,
    ) -> Result<(), Failure> {
        let params = params![job, self.now_ms(), reason, error];
        let kept: Option<Option<String>> =
            self.find(sql!("job_bury"), params, |row| row.get(0))?;
        if let Some(id) = kept.flatten() {
            self.wake_waiters_of(&id);
        }
        Ok(())
    }

    /// Schedules a leased job for a later time, in milliseconds since the Unix epoch.
    pub(crate) fn retry_at(
        &self,
        job: i64,
        due: i64,
        again: Again<'_>,
    ) -> Result<(), Failure> {
        self.retry(job, Some(due), again)
    }

    /// Makes a leased job ready at once, at the back of the queue.
    pub(crate) fn retry_now(&self, job: i64, again: Again<'_>) -> Result<(), Failure> {
        self.retry(job, None, again)
    }

    fn retry(
        &self,
        job: i64,
        due: Option<i64>,
        again: Again<'_>,
    ) -> Result<(), Failure> {
        let turn = self.take_turns(1)?;
        let (error, uncounted) = match again {
            Again::Failed { error } => (Some(error), 0),
            Again::Postponed => (None, 1),
        };
        let params = params![job, due, turn, error, uncounted, self.now_ms()];
        self.change(sql!("job_retry"), params)?;
        Ok(())
    }

    pub(crate) fn give_back(&self, job: i64) -> Result<(), Failure> {
        self.change(sql!("job_give_back"), [job])?;
        Ok(())
    }

    pub(crate) fn count_ended(&self, ended: Ended) -> Result<(), Failure> {
        if ended == Ended::default() {
            return Ok(());
        }
        let Ended { finished, discarded, cancelled } = ended;
        let params = params![self.queue, finished, discarded, cancelled];
        self.change(sql!("queue_count"), params)?;
        Ok(())
    }
}

/// Why a leased job will be delivered again.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Again<'a> {
    /// The attempt failed with this error, which replaces the last one.
    Failed { error: &'a str },
    /// The job was not run: the delivery is not counted, and the last error stays (R26).
    Postponed,
}

/// How many jobs one call has finished, discarded and cancelled.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) struct Ended {
    pub(crate) finished: u32,
    pub(crate) discarded: u32,
    pub(crate) cancelled: u32,
}
