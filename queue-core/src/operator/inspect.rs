//! The calls that find one job, run it now, and list the workers (R31 to R33).

use std::num::NonZeroU32;

use async_trait::async_trait;

use super::{JobView, PageCursor, WorkersPage};
use crate::{Error, JobId, Operator, environment::Timestamp};

/// A queue that finds a job by its id, runs a scheduled job now, and lists the workers
/// that run (R31, R32, R33).
///
/// [`Operator::inspect_queue`] returns this trait for a queue of any type. [`find_job`]
/// also finds the jobs that [`job`](Self::job) cannot find.
///
/// [`find_job`]: super::find_job
///
/// ```
/// use relq_core::{Error, JobId, operator::{InspectQueue, JobLookup, RunNow}};
///
/// /// Runs a job now, and says why if that is not possible.
/// async fn hurry(queue: &dyn InspectQueue, id: &JobId) -> Result<String, Error> {
///     Ok(match queue.run_now(id).await? {
///         RunNow::Ready => format!("{id} is ready"),
///         RunNow::Following { leader } => format!("{id} follows {leader}"),
///         RunNow::NotScheduled => match queue.job(id).await? {
///             JobLookup::Stored(found) => {
///                 format!("{id} is {}", found.job.detail.state().as_str())
///             }
///             JobLookup::Ended { .. } => format!("{id} has ended"),
///             _ => format!("{id} is not known"),
///         },
///     })
/// }
/// ```
#[async_trait]
pub trait InspectQueue: Operator {
    /// Looks for the job with this id where the backend has an index, and among the names
    /// of the leases (R31). It reads no other job, so the cost does not grow with the
    /// ready jobs.
    async fn job(&self, job: &JobId) -> Result<JobLookup, Error>;

    /// Makes a scheduled job ready now, at the back of the queue, as if it were due (R32).
    async fn run_now(&self, job: &JobId) -> Result<RunNow, Error>;

    /// Returns one page of the workers that have reported, in no order (R33). A worker
    /// that is listed during the whole listing is on at least one page; it may be on
    /// several.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a cursor that this backend did not make.
    async fn workers(
        &self,
        after: Option<&PageCursor>,
        limit: NonZeroU32,
    ) -> Result<WorkersPage, Error>;
}

/// The answer of a backend to a look-up of a job by its id.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum JobLookup {
    /// The job is stored.
    Stored(Box<JobRecord>),
    /// The job has ended, and its id is remembered for some time (R4).
    Ended {
        /// Whether the job was done. It was discarded, cancelled, dropped or purged
        /// otherwise.
        was_done: bool,
        /// The time until which the id is remembered.
        until: Timestamp,
    },
    /// No stored job was found by the id, but a ready job may have it: ready jobs have no
    /// index here.
    MaybeReady {
        /// The held followers of the id, in the order of their pushes (R30).
        followers: Vec<JobId>,
    },
    /// No stored job has the id.
    Unknown,
}

/// All that is stored of one job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobRecord {
    /// The job, as a page of [`Operator::peek`] shows it.
    pub job: JobView,
    /// Its held followers, in the order of their pushes (R30). [`find_job`] says where the
    /// order is another one.
    ///
    /// [`find_job`]: super::find_job
    pub followers: Vec<JobId>,
}

impl JobRecord {
    /// Creates the record of a job with these held followers.
    pub fn new(job: JobView, followers: Vec<JobId>) -> Self {
        Self { job, followers }
    }
}

/// The result of running a job now.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RunNow {
    /// The job is ready.
    Ready,
    /// The job is held until another one is done; nothing was changed (R30).
    Following {
        /// The job that it follows.
        leader: JobId,
    },
    /// No scheduled job has this id: the job is ready, leased or dead, has ended, or
    /// never was. Nothing was changed.
    NotScheduled,
}
