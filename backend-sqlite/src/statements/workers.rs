//! The SQL statements for the reports of workers, as functions.

use relq_core::operator::WORKER_FORGOTTEN_AFTER;
use rusqlite::params;

use super::sql;
use crate::failure::Failure;
use crate::store::Store;

/// The stored record of a worker that has reported.
pub(crate) struct WorkerRow {
    pub(crate) worker: String,
    pub(crate) slots: u32,
    /// The time of its first report (ms since the Unix epoch).
    pub(crate) since: i64,
    /// Until when it is listed (ms since the Unix epoch).
    pub(crate) until: i64,
}

impl Store<'_> {
    /// Returns until when a worker that reports now is listed (ms since the Unix epoch).
    pub(crate) fn listed_until(&self) -> i64 {
        self.ms_after(WORKER_FORGOTTEN_AFTER)
    }

    pub(crate) fn report_worker(
        &self,
        worker: &str,
        slots: u32,
    ) -> Result<(), Failure> {
        let until = self.listed_until();
        let params = params![self.queue, worker, self.now_ms(), until, slots];
        self.change(sql!("worker_report"), params)?;
        Ok(())
    }

    pub(crate) fn forget_worker(&self, worker: &str) -> Result<(), Failure> {
        self.change(sql!("worker_forget"), params![self.queue, worker])?;
        Ok(())
    }

    /// Forgets up to `most` workers that have not reported for long enough, or whose report
    /// is from before the clock was set back.
    pub(crate) fn sweep_workers(&self, most: u32) -> Result<(), Failure> {
        let params = params![self.now_ms(), most, self.listed_until()];
        self.change(sql!("sweep_workers"), params)?;
        Ok(())
    }

    /// Reads up to `most` workers behind the one with the name `after`. Some of them may
    /// have to be forgotten.
    pub(crate) fn worker_page(
        &self,
        after: &str,
        most: u32,
    ) -> Result<Vec<WorkerRow>, Failure> {
        self.list(sql!("worker_page"), params![self.queue, after, most], |row| {
            Ok(WorkerRow {
                worker: row.get(0)?,
                slots: row.get(1)?,
                since: row.get(2)?,
                until: row.get(3)?,
            })
        })
    }
}
