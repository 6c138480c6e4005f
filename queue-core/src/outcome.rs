//! The results of calls, and a worker's report on a job that it held.

use std::time::Duration;

use crate::{Delivery, Error, JobId, Receipt, Timestamp};

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

/// A worker's report on a job that it held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// Proof of the lease.
    pub receipt: Receipt,
    /// The change that the store must make to the job.
    pub disposition: Disposition,
}

impl Settlement {
    /// A settlement that applies `disposition` to the job of `receipt`.
    pub fn new(receipt: Receipt, disposition: Disposition) -> Self {
        Self { receipt, disposition }
    }
}

/// The longest error text that is kept with a job, in bytes; the rest is cut off.
pub const MAX_ERROR_BYTES: usize = 4096;

/// The change that the store must make to a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// The job succeeded and is removed (R8).
    Done,
    /// The job failed and is retried, or buried when this was its last attempt (R11).
    Retry {
        /// How long until the job is ready again.
        after: Duration,
        /// Why the job failed; kept as its last error.
        error: String,
    },
    /// The job failed and is buried at once.
    Dead {
        /// Why the job failed; kept as its last error.
        error: String,
    },
    /// The job is removed without having succeeded.
    Discard,
    /// The job was not run: it goes back to the front, and the delivery is not counted
    /// as an attempt (R24).
    GiveBack,
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
