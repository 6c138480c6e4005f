//! Counts of a worker's jobs, by their result.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use relq_core::Disposition;

use crate::{JobContext, context::LeaseEnd};

/// The results of the jobs that a worker claimed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Acknowledged.
    pub done: u64,
    /// Failed, and will be retried.
    pub retried: u64,
    /// Failed for good: buried at once, or after the last attempt.
    pub dead: u64,
    /// Dropped without having succeeded.
    pub discarded: u64,
    /// Cancelled by an operator while they ran.
    pub cancelled: u64,
    /// Not settled: the lease was lost, or the store was unavailable until the lease
    /// expired. Such jobs come back.
    pub lost: u64,
    /// Perhaps settled: the store may have applied a call whose reply never arrived.
    /// If it did not, the job comes back.
    pub uncertain: u64,
    /// Given back without counting the attempt: at shutdown (R24), or because the reply
    /// to the claim came after the lease may have expired.
    pub given_back: u64,
}

/// A view of the counts of a running worker. Clones share them.
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    done: AtomicU64,
    retried: AtomicU64,
    dead: AtomicU64,
    discarded: AtomicU64,
    cancelled: AtomicU64,
    lost: AtomicU64,
    uncertain: AtomicU64,
    given_back: AtomicU64,
    running: AtomicU64,
}

impl Progress {
    /// The current counts.
    pub fn summary(&self) -> Summary {
        let Counts {
            done,
            retried,
            dead,
            discarded,
            cancelled,
            lost,
            uncertain,
            given_back,
            ..
        } = &*self.0;
        Summary {
            done: done.load(Relaxed),
            retried: retried.load(Relaxed),
            dead: dead.load(Relaxed),
            discarded: discarded.load(Relaxed),
            cancelled: cancelled.load(Relaxed),
            lost: lost.load(Relaxed),
            uncertain: uncertain.load(Relaxed),
            given_back: given_back.load(Relaxed),
        }
    }

    /// How many handlers run now.
    pub fn running(&self) -> u64 {
        self.0.running.load(Relaxed)
    }

    pub(crate) fn set_running(&self, running: usize) {
        self.0.running.store(running as u64, Relaxed);
    }

    pub(crate) fn applied(&self, job: &JobContext, disposition: &Disposition) {
        let counts = &*self.0;
        let count = match disposition {
            Disposition::Done => &counts.done,
            Disposition::Retry { .. } if job.is_last_attempt() => &counts.dead,
            Disposition::Retry { .. } => &counts.retried,
            Disposition::Dead { .. } => &counts.dead,
            Disposition::Discard => &counts.discarded,
            Disposition::GiveBack => &counts.given_back,
        };
        count.fetch_add(1, Relaxed);
    }

    pub(crate) fn ended(&self, end: LeaseEnd) {
        let count = match end {
            LeaseEnd::Lost => &self.0.lost,
            LeaseEnd::Cancelled => &self.0.cancelled,
        };
        count.fetch_add(1, Relaxed);
    }

    pub(crate) fn perhaps_settled(&self) {
        self.0.uncertain.fetch_add(1, Relaxed);
    }

    pub(crate) fn left(&self, jobs: u64) {
        self.0.given_back.fetch_add(jobs, Relaxed);
    }
}
