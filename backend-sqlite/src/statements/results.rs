//! The SQL statements for results of jobs, and for what is remembered of a job that ends,
//! as functions.

use rusqlite::{Row, params};

use super::sql;
use crate::failure::Failure;
use crate::followers::{self, Moved};
use crate::store::{Store, WINDOW};

/// A job whose id or result, or both, is kept after its end.
pub(crate) struct Remembered {
    pub(crate) id: String,
    /// Whether the id is remembered, so that it is not used again too early (R4).
    pub(crate) keeps_id: bool,
    /// For how long it is remembered how the job ended (R29). `None` if it is not.
    pub(crate) keep_ms: Option<i64>,
}

/// How a job that is removed has ended.
#[derive(Debug, Clone, Copy)]
pub(crate) enum End<'a> {
    Done {
        result: &'a [u8],
    },
    Discarded,
    Cancelled {
        /// The job that it followed, if that job ended otherwise than done (R30).
        leader: Option<&'a str>,
    },
    /// The job was dead, and an operator purged it.
    Purged,
}

/// The row of a job that keeps its result.
pub(crate) struct ResultRow {
    /// How the job has ended. `None` if it has not.
    pub(crate) ended_as: Option<String>,
    /// The result of a job that is done, or the progress of an unfinished one.
    pub(crate) value: Option<Vec<u8>>,
    /// The job with whose end a follower was cancelled.
    pub(crate) leader: Option<String>,
    /// The state of an unfinished job. `None` if the job is missing.
    pub(crate) state: Option<String>,
    pub(crate) reason: Option<String>,
}

impl Store<'_> {
    /// Remembers a job that ends, as long as its producer asked for: its id (R4), and how
    /// it ended (R29). Releases its followers, or orphans them (R30).
    pub(crate) fn remember(
        &self,
        job: &Remembered,
        end: End<'_>,
    ) -> Result<Moved, Failure> {
        let mut moved = Moved::default();
        if job.keeps_id {
            let is_done = matches!(end, End::Done { .. });
            // Remember the id for as long as the result, so that no other job takes it.
            let kept_until = self.now_ms().saturating_add(job.keep_ms.unwrap_or(0));
            let until = self.ms_after(WINDOW).max(kept_until);
            let params = params![self.queue, job.id, until, is_done];
            self.change(sql!("id_remember"), params)?;
            moved = followers::end_of_leader(self, &job.id, is_done)?;
        }
        let Some(keep_ms) = job.keep_ms else { return Ok(moved) };
        let until = self.now_ms().saturating_add(keep_ms);
        let (ended_as, result, leader) = end.columns();
        let params = params![self.queue, job.id, ended_as, result, until, leader];
        self.change(sql!("result_end"), params)?;
        self.wake_waiters_of(&job.id);
        Ok(moved)
    }

    /// Stores the row for the result of a new job.
    pub(crate) fn add_result(&self, id: &str) -> Result<(), Failure> {
        self.change(sql!("result_add"), params![self.queue, id])?;
        Ok(())
    }

    /// Replaces the progress of an unfinished job. `None` removes it.
    pub(crate) fn set_progress(
        &self,
        id: &str,
        progress: Option<&[u8]>,
    ) -> Result<(), Failure> {
        self.change(sql!("result_report"), params![self.queue, id, progress])?;
        Ok(())
    }

    /// Reads what became of a job. `None` if that is not kept, or not any more.
    pub(crate) fn read_result(&self, id: &str) -> Result<Option<ResultRow>, Failure> {
        let params = params![self.queue, id, self.now_ms()];
        self.find(sql!("result_read"), params, |row| {
            Ok(ResultRow {
                ended_as: row.get(0)?,
                value: row.get(1)?,
                leader: row.get(2)?,
                state: row.get(3)?,
                reason: row.get(4)?,
            })
        })
    }

    /// Removes what is kept of a job that is purged.
    pub(super) fn remove_result(&self, id: &str) -> Result<(), Failure> {
        self.change(sql!("result_remove"), params![self.queue, id])?;
        self.wake_waiters_of(id);
        Ok(())
    }

    /// Whether a job is stored, and is not dead.
    pub(crate) fn is_pending(&self, id: &str) -> Result<bool, Failure> {
        let params = params![self.queue, id];
        Ok(self.find(sql!("result_pending"), params, |_| Ok(()))?.is_some())
    }

    /// Removes up to `most` results of the queue's jobs. Returns how many it removed.
    pub(crate) fn purge_results(&self, most: u32) -> Result<usize, Failure> {
        self.change(sql!("purge_results"), params![self.queue, most])
    }
}

impl<'a> End<'a> {
    /// The word for this end, the result, and the leader.
    fn columns(self) -> (&'static str, Option<&'a [u8]>, Option<&'a str>) {
        match self {
            Self::Done { result } => ("done", Some(result), None),
            Self::Discarded => ("discarded", None, None),
            Self::Cancelled { leader } => ("cancelled", None, leader),
            Self::Purged => ("purged", None, None),
        }
    }
}

/// Reads the columns `id`, `keeps_id` and `keep_ms` from the column `first` on.
pub(super) fn read_remembered(
    row: &Row<'_>,
    first: usize,
) -> rusqlite::Result<Remembered> {
    Ok(Remembered {
        id: row.get(first)?,
        keeps_id: row.get(first + 1)?,
        keep_ms: row.get(first + 2)?,
    })
}
