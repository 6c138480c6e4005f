//! The numbers of a queue's jobs in each state.

use std::time::Duration;

/// The numbers of jobs in each state. The store counts them at the time of the call
/// (R23).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Jobs that wait until a worker claims them.
    pub ready: u64,
    /// Jobs that wait until a set time, when they become ready, or until the job that
    /// they follow is done (R30).
    pub scheduled: u64,
    /// Jobs that workers hold, with those that are overdue.
    pub leased: u64,
    /// Leased jobs whose lease has expired and that no reaper has recovered yet. They are
    /// part of [`leased`](Self::leased).
    pub overdue: u64,
    /// Jobs that were buried and are kept until they are redriven or purged.
    pub dead: u64,
    /// Jobs that were settled as done, since the queue was created or purged.
    pub finished: u64,
    /// Jobs that were settled as discarded, since the queue was created or purged.
    pub discarded: u64,
    /// Jobs that were cancelled, since the queue was created or purged.
    pub cancelled: u64,
    /// Whether an operator has paused the queue, so that workers can claim no job.
    pub paused: bool,
    /// How long until the next scheduled job is due: zero when a job is already due,
    /// `None` when no job has a due time. A job that follows another one has none yet
    /// (R30).
    pub next_due_in: Option<Duration>,
    /// How long the oldest ready job has been waiting for a worker, counted from when it
    /// became ready, or was due (R27). `None` if no job waits for a worker, if the time
    /// when it was pushed is not known, or if the backend does not support
    /// [`Capability::ReadyAge`](crate::capabilities::Capability::ReadyAge).
    pub oldest_ready_age: Option<Duration>,
}

impl Stats {
    /// Creates statistics in which all counts are zero and claims are not paused. A
    /// backend then sets the counts.
    pub fn new() -> Self {
        Self::default()
    }

    /// Returns the number of jobs that are not finished: ready, scheduled and leased
    /// jobs.
    pub fn unfinished(&self) -> u64 {
        self.ready + self.scheduled + self.leased
    }
}
