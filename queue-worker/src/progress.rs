//! Counts the jobs of a worker by their result.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering::Relaxed},
};

use crate::{
    WorkerState,
    observer::JobOutcome,
    state::{Contact, EndOnDrop, Lifecycle},
};

/// How many of the jobs that a worker claimed ended with each result. A job counts once
/// for each of its deliveries to this worker: one that is retried and then done counts in
/// both numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Summary {
    /// Jobs that were acknowledged.
    pub done: u64,
    /// Jobs that failed and will be retried.
    pub retried: u64,
    /// Jobs that failed for good: they were buried at once, or after their last
    /// attempt.
    pub dead: u64,
    /// Jobs that were removed without having succeeded, because a handler asked for it.
    pub discarded: u64,
    /// Jobs that a handler postponed without counting the attempt (R26).
    pub postponed: u64,
    /// Jobs that an operator cancelled while they ran.
    pub cancelled: u64,
    /// Jobs that were not settled: their lease was lost, or the store was unavailable
    /// until it expired. Such jobs are delivered again.
    pub lost: u64,
    /// Jobs that may be settled: the store may have applied a call whose reply never
    /// arrived, or has applied one that too few replicas confirmed. If the store did not,
    /// or a fail-over loses the call, the job is delivered again.
    pub uncertain: u64,
    /// Jobs that were given back without counting the attempt: at shutdown (R24), or
    /// because their lease may have expired before the reply to the claim was read.
    pub given_back: u64,
}

/// Reads the counts and the state of a worker while it runs. [`Worker::progress`] returns
/// it, and clones read the same worker's.
///
/// [`Worker::progress`]: crate::Worker::progress
///
/// ```
/// use relq_worker::{Progress, WorkerState};
///
/// /// The status code that answers a readiness probe.
/// fn readiness(progress: &Progress) -> u16 {
///     if progress.state().is_ready() { 200 } else { 503 }
/// }
///
/// let progress = Progress::default(); // in a program: worker.progress()
/// assert_eq!(progress.state(), WorkerState::Starting);
/// assert_eq!(readiness(&progress), 503);
/// ```
#[derive(Debug, Clone, Default)]
pub struct Progress(Arc<Counts>);

#[derive(Debug, Default)]
struct Counts {
    done: AtomicU64,
    retried: AtomicU64,
    dead: AtomicU64,
    discarded: AtomicU64,
    postponed: AtomicU64,
    cancelled: AtomicU64,
    lost: AtomicU64,
    uncertain: AtomicU64,
    given_back: AtomicU64,
    running: AtomicU64,
    lifecycle: Arc<Lifecycle>,
}

impl Progress {
    /// The number of jobs with each result so far.
    pub fn summary(&self) -> Summary {
        let Counts {
            done,
            retried,
            dead,
            discarded,
            postponed,
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
            postponed: postponed.load(Relaxed),
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

    /// The state of the worker. It shows that a store cannot be reached when the next
    /// claim or recovery has failed. A recovery is tried at least once in each interval
    /// of [`reap_every`](crate::Worker::reap_every).
    pub fn state(&self) -> WorkerState {
        self.0.lifecycle.state()
    }

    pub(crate) fn begin(&self, queues: usize) -> EndOnDrop {
        Arc::clone(&self.0.lifecycle).begin(queues)
    }

    pub(crate) fn stopping(&self) {
        self.0.lifecycle.stopping();
    }

    pub(crate) fn contact(&self) -> Contact {
        Contact::new(Arc::clone(&self.0.lifecycle))
    }

    pub(crate) fn one_more_runs(&self) {
        self.0.running.fetch_add(1, Relaxed);
    }

    pub(crate) fn one_less_runs(&self) {
        self.0.running.fetch_sub(1, Relaxed);
    }

    pub(crate) fn ended(&self, outcome: JobOutcome<'_>) {
        let counts = &*self.0;
        let count = match outcome {
            JobOutcome::Done => &counts.done,
            JobOutcome::Retried { .. } => &counts.retried,
            JobOutcome::Buried { .. } => &counts.dead,
            JobOutcome::Discarded => &counts.discarded,
            JobOutcome::Postponed { .. } => &counts.postponed,
            JobOutcome::GivenBack => &counts.given_back,
            JobOutcome::Cancelled => &counts.cancelled,
            JobOutcome::Lost => &counts.lost,
            JobOutcome::Uncertain => &counts.uncertain,
        };
        count.fetch_add(1, Relaxed);
    }

    pub(crate) fn released(&self, jobs: u64) {
        self.0.given_back.fetch_add(jobs, Relaxed);
    }
}
