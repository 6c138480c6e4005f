//! Figures of a queue.

use std::time::Duration;

/// How many jobs are where, read from the structures themselves (R23).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Waiting to be claimed.
    pub ready: u64,
    /// Waiting for their time.
    pub scheduled: u64,
    /// In the hands of workers.
    pub leased: u64,
    /// Of the leased, those whose lease has ended and that nobody recovered yet.
    pub overdue: u64,
    /// Buried.
    pub dead: u64,
    /// Settled as done, ever since the queue was made or purged.
    pub finished: u64,
    /// Settled as discarded, ever since the queue was made or purged.
    pub discarded: u64,
    /// Cancelled, ever since the queue was made or purged.
    pub cancelled: u64,
    /// Whether claims are paused.
    pub paused: bool,
    /// How long until the next scheduled job is due; zero when one is overdue.
    pub next_due_in: Option<Duration>,
}

impl Stats {
    /// All zero and not paused; a backend fills in what it knows.
    pub fn new() -> Self {
        Self::default()
    }

    /// Jobs that a worker may still have to do: ready, scheduled and leased.
    pub fn unfinished(&self) -> u64 {
        self.ready + self.scheduled + self.leased
    }
}
