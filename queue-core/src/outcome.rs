//! What calls answer, and what a worker says of a job that it held.

use std::time::Duration;

use crate::{Delivery, Error, JobId, Receipt, Timestamp};

/// What became of one pushed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Pushed {
    /// It is in the store (R1).
    Stored(JobId),
    /// Nothing was stored, because a job that exists stands for it.
    Duplicate {
        /// The job that exists.
        existing: JobId,
        /// What the two share.
        by: DuplicateOf,
    },
}

impl Pushed {
    /// The job that now stands for what was pushed.
    pub fn job(&self) -> &JobId {
        match self {
            Self::Stored(id) | Self::Duplicate { existing: id, .. } => id,
        }
    }
}

/// What a duplicate shares with the job that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum DuplicateOf {
    /// The client-made id: the job exists, or ended within the window (R4).
    Id,
    /// The unique key (R16).
    UniqueKey,
}

/// What a worker says of a job that it held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settlement {
    /// Proof of the lease.
    pub receipt: Receipt,
    /// What is to become of the job.
    pub disposition: Disposition,
}

impl Settlement {
    /// Says `disposition` of the job that `receipt` holds.
    pub fn new(receipt: Receipt, disposition: Disposition) -> Self {
        Self { receipt, disposition }
    }
}

/// The longest error text that is kept with a job, in bytes; the rest is cut off.
pub const MAX_ERROR_BYTES: usize = 4096;

/// What is to become of a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Disposition {
    /// It succeeded and is removed (R8).
    Done,
    /// It failed and is tried again, or buried when this was its last attempt (R11).
    Retry {
        /// How long until it is ready again.
        after: Duration,
        /// Why it failed; kept as the job's last error.
        error: String,
    },
    /// It failed and is buried at once.
    Dead {
        /// Why it failed; kept as the job's last error.
        error: String,
    },
    /// It is removed without having succeeded.
    Discard,
    /// It was not worked on: it goes back to the front and the delivery is not
    /// counted as an attempt (R24).
    GiveBack,
}

/// What became of one settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Settled {
    /// The disposition is carried out.
    Applied,
    /// The lease was not this receipt's any more: nothing was changed (R7).
    LeaseLost,
}

/// The answers to a settlement and a claim made together.
#[derive(Debug)]
pub struct SettledAndClaimed {
    /// What became of the settlements, in their order.
    pub settled: Result<Vec<Settled>, Error>,
    /// The jobs claimed.
    pub claimed: Result<Vec<Delivery>, Error>,
}

/// What became of one lease that a heartbeat named.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Extended {
    /// The lease runs until then, by the store's clock.
    Until(Timestamp),
    /// The job was cancelled: stop working on it; there is nothing to settle.
    Cancelled,
    /// The lease was not this receipt's any more (R7).
    LeaseLost,
}

/// What `release_worker` gave back.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Released {
    /// Jobs that went back to the front of the queue.
    pub jobs: u64,
}

/// What one page of recovery did.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Recovered {
    /// Jobs whose lease had expired and that are ready again.
    pub requeued: u32,
    /// Jobs whose lease had expired on their last attempt, now dead.
    pub buried: u32,
    /// Scheduled jobs that were due and are ready now.
    pub promoted: u32,
    /// Whether there was more to do than fitted the page.
    pub more: bool,
    /// How long until the next lease or delay ends, if any runs.
    pub next_in: Option<Duration>,
}
