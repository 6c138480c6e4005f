//! The results of calls.

use std::time::Duration;

use crate::{Delivery, Error, JobId, environment::Timestamp};

/// The result of pushing one job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// The job is in the store (R1).
    Stored(JobId),
    /// Nothing was stored, because an existing job takes its place.
    Duplicate {
        /// The existing job.
        existing: JobId,
        /// The property that both jobs have.
        by: DuplicateOf,
    },
}

impl Pushed {
    /// The job in the store: the pushed one, or the existing one of a duplicate.
    pub fn job(&self) -> &JobId {
        match self {
            Self::Stored(id) | Self::Duplicate { existing: id, .. } => id,
        }
    }
}

/// The property that makes a job a duplicate of an existing one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateOf {
    /// The client-made id: the job exists, or ended less than five minutes ago (R4).
    Id,
    /// The unique key (R16).
    UniqueKey,
}

/// The result of one settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settled {
    /// The disposition was applied.
    Applied,
    /// The receipt no longer holds the lease: nothing was changed (R7).
    LeaseLost,
}

/// The results of a settlement and a claim made in one call.
#[derive(Debug)]
pub struct SettledAndClaimed {
    /// The results of the settlements, in their order.
    pub settled: Result<Vec<Settled>, Error>,
    /// The jobs claimed.
    pub claimed: Result<Vec<Delivery>, Error>,
}

/// The result for one lease that a heartbeat named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extended {
    /// The lease runs until this time, by the store's clock.
    Until(Timestamp),
    /// The job was cancelled. The worker must stop the handler, and has nothing to
    /// settle.
    Cancelled,
    /// The receipt no longer holds the lease (R7).
    LeaseLost,
}

/// The result of `release_worker`.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Released {
    /// Jobs that went back to the front of the queue.
    pub jobs: u64,
}

/// The result of one page of recovery.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Jobs whose lease had expired and that are now ready again.
    pub requeued: u32,
    /// Jobs whose lease had expired on their last attempt and that are now dead.
    pub buried: u32,
    /// Scheduled jobs that were due and are now ready.
    pub promoted: u32,
    /// Whether more work is left than one page allows.
    pub more: bool,
    /// How long until the next lease or delay ends, if there is one.
    pub next_in: Option<Duration>,
}
