//! The results that the calls of a queue return, such as `Pushed` and `Settled`.

use std::time::Duration;

use crate::{Delivery, Error, JobId, environment::Timestamp};

/// The result of pushing one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// The job is in the store under this id (R1).
    Stored(JobId),
    /// Nothing was stored, because a job with the same id or unique key exists.
    Duplicate {
        /// The id of the existing job.
        existing: JobId,
        /// The property that the two jobs share: the id or the unique key.
        by: DuplicateOf,
    },
}

impl Pushed {
    /// Returns the id of the stored job. For a duplicate, returns the id of the
    /// existing job.
    pub fn job(&self) -> &JobId {
        match self {
            Self::Stored(id) | Self::Duplicate { existing: id, .. } => id,
        }
    }
}

/// The property that makes a job a duplicate of an existing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateOf {
    /// The client-made id: a job with this id exists, or ended less than five minutes
    /// ago (R4).
    Id,
    /// The unique key: another unfinished job holds it (R16).
    UniqueKey,
}

/// The result of one settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settled {
    /// The settlement was applied to the job.
    Applied,
    /// The receipt no longer holds the lease: nothing was changed (R7).
    LeaseLost,
}

/// The results of a call that both settles jobs and claims jobs.
#[derive(Debug)]
pub struct SettledAndClaimed {
    /// The result of each settlement, in the order of the call.
    pub settled: Result<Vec<Settled>, Error>,
    /// The jobs that were claimed.
    pub claimed: Result<Vec<Delivery>, Error>,
}

/// The result for one lease that a heartbeat tried to extend.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extended {
    /// The lease was extended: it runs until this time, by the store's clock.
    Until(Timestamp),
    /// The job was cancelled. The worker must stop the handler, and must not settle the
    /// job.
    Cancelled,
    /// The receipt no longer holds the lease (R7).
    LeaseLost,
    /// The store of this lease cannot be reached, or its reply was lost, while the other
    /// results of the call are known. The lease may have been extended. Only a queue that
    /// consists of several stores returns this; a queue of one store returns an error.
    Unknown,
}

/// The result of [`release_worker`](crate::ReliableQueue::release_worker).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Released {
    /// The number of jobs that went back to the front of the queue.
    pub jobs: u64,
}

/// The result of one call of [`recover`](crate::ReliableQueue::recover).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// The number of jobs whose lease had expired and that are now ready again.
    pub requeued: u32,
    /// The number of jobs whose lease had expired on their last attempt and that are
    /// now dead.
    pub buried: u32,
    /// The number of scheduled jobs that were due and are now ready.
    pub promoted: u32,
    /// Whether more jobs must be recovered than fit into this call's page.
    pub more: bool,
    /// How long until the next lease expires or the next delay ends; `None` when no job
    /// is leased or has a due time.
    pub next_in: Option<Duration>,
}
