//! Results and progress of jobs: kept for a stated time, and waited for (R29).

mod job_handle;

use std::time::Duration;

use async_trait::async_trait;

pub use job_handle::{JobHandle, NoResult};

use crate::{
    Bytes, Disposition, Error, JobId, Receipt, ReliableQueue, Settlement,
    capabilities::Capabilities, error::Operation,
};

/// A queue that keeps what becomes of a job, for the producer that asked for it (R29).
///
/// A producer asks by [`NewJob::keep_result`](crate::NewJob::keep_result). The worker ends
/// the job by [`Disposition::DoneWith`] with a result, which is stored in the step that
/// removes the job. Meanwhile it may report progress.
///
/// [`ReliableQueue::result_queue`] returns this trait for a queue of any type.
///
/// ```
/// use std::time::Duration;
/// use relq_core::{Error, JobId, results::{JobResult, ResultQueue}};
///
/// /// Waits up to a minute for the size of a thumbnail.
/// async fn size_of(queue: &dyn ResultQueue, job: &JobId) -> Result<Option<String>, Error> {
///     let found = queue.wait_result(job, Duration::from_secs(60)).await?;
///     Ok(match found {
///         Some(JobResult::Done { result }) => Some(String::from_utf8_lossy(&result).into()),
///         Some(JobResult::Dead { error }) => {
///             println!("the job is dead: {error}");
///             None
///         }
///         // It has not ended yet, was cancelled, or its result is kept no longer.
///         _ => None,
///     })
/// }
/// ```
#[async_trait]
pub trait ResultQueue: ReliableQueue {
    /// Replaces the progress that is shown for the job of a lease. It stays until the next
    /// report, in later attempts, too, and ends with the job.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a progress of more than [`MAX_PROGRESS`] bytes.
    async fn report_progress(
        &self,
        receipt: &Receipt,
        progress: &[u8],
    ) -> Result<Reported, Error>;

    /// Returns the progress of each of `jobs`, or how it ended, in order. `None` for a
    /// job that keeps no result, that is not known, that
    /// [`purge`](crate::Operator::purge) removed, or whose result was kept long enough.
    ///
    /// # Errors
    /// [`Error::Invalid`] for more jobs than
    /// [`max_jobs_per_call`](crate::capabilities::Limits::max_jobs_per_call).
    async fn read_results(
        &self,
        jobs: &[JobId],
    ) -> Result<Vec<Option<JobResult>>, Error>;

    /// Waits until the job ends, or for `timeout`. Returns what became of it so far, as
    /// [`read_results`](Self::read_results) does; `None` at once for a job that it does
    /// not know.
    ///
    /// The end of the job wakes the call, which does not ask the store again and again
    /// meanwhile. All calls that wait on one handle of a queue share one connection. If the
    /// store does not reply, the call ends after `timeout`, by the time limits of the
    /// connection.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a `timeout` of more than
    /// [`MAX_DURATION`](crate::limits::MAX_DURATION).
    async fn wait_result(
        &self,
        job: &JobId,
        timeout: Duration,
    ) -> Result<Option<JobResult>, Error>;
}

/// The largest result of a job, in bytes: 1 MiB.
pub const MAX_RESULT: usize = 1024 * 1024;

/// The largest progress of a job, in bytes: 64 KiB.
pub const MAX_PROGRESS: usize = 64 * 1024;

/// The progress of a job that keeps its result, or how it ended (R29).
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobResult {
    /// The job has not ended: it is scheduled, ready or leased.
    Unfinished {
        /// The last report of a worker; `None` if there was none.
        progress: Option<Bytes>,
    },
    /// The job is done.
    Done {
        /// The result of its handler; empty for [`Disposition::Done`].
        result: Bytes,
    },
    /// The job was buried. If it is redriven, it is unfinished again.
    Dead {
        /// Why it died, in words.
        error: String,
    },
    /// The job's worker discarded it.
    Discarded,
    /// The job was cancelled, or dropped with its batch.
    Cancelled {
        /// The job that it followed, if that job ended without being done (R30). `None`
        /// for a job that was itself cancelled or dropped.
        leader: Option<JobId>,
    },
    /// The job was dead, and an operator purged it.
    Purged,
}

impl JobResult {
    /// Whether the job has ended. A dead job has.
    pub fn has_ended(&self) -> bool {
        !matches!(self, Self::Unfinished { .. })
    }
}

/// The result of a report of progress.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reported {
    /// The progress is stored.
    Stored,
    /// The receipt no longer holds the lease: nothing was changed (R7).
    LeaseLost,
    /// The job keeps no result: nothing was changed.
    NotKept,
}

impl Capabilities {
    /// Refuses a result that is too large. Every backend calls this first in `settle`.
    ///
    /// # Errors
    /// [`Error::Invalid`] if a result is refused.
    pub fn check_settlements(&self, done: &[Settlement]) -> Result<(), Error> {
        done.iter().try_for_each(|settlement| match &settlement.disposition {
            Disposition::DoneWith { result } => self.check_bytes(
                Operation::Settle,
                "a result",
                result.len(),
                MAX_RESULT,
            ),
            _ => Ok(()),
        })
    }

    /// Refuses a progress that is too large. Every backend calls this first in
    /// [`report_progress`](ResultQueue::report_progress).
    ///
    /// # Errors
    /// [`Error::Invalid`] if the progress is refused.
    pub fn check_progress(&self, progress: &[u8]) -> Result<(), Error> {
        let (operation, bytes) = (Operation::ReportProgress, progress.len());
        self.check_bytes(operation, "a progress", bytes, MAX_PROGRESS)
    }

    /// Refuses a wait that is too long. Every backend calls this first in
    /// [`wait_result`](ResultQueue::wait_result).
    ///
    /// # Errors
    /// [`Error::Invalid`] if the time-out is refused.
    pub fn check_wait_result(&self, timeout: Duration) -> Result<(), Error> {
        self.check_duration(Operation::WaitResult, "the time-out", timeout)
    }
}
