//! Statistics of a queue.

use std::time::Duration;

/// How many jobs are in each state, read from the structures themselves (R23).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Stats {
    /// Waiting to be claimed.
    pub ready: u64,
    /// Waiting until they are due.
    pub scheduled: u64,
    /// Held by workers.
    pub leased: u64,
    /// Leased jobs whose lease has expired and that no reaper has recovered yet.
    pub overdue: u64,
    /// Buried.
    pub dead: u64,
    /// Settled as done, since the queue was created or purged.
    pub finished: u64,
    /// Settled as discarded, since the queue was created or purged.
    pub discarded: u64,
    /// Cancelled, since the queue was created or purged.
    pub cancelled: u64,
    /// Whether claims are paused.
    pub paused: bool,
    /// How long until the next scheduled job is due; zero when a job is overdue.
    pub next_due_in: Option<Duration>,
}

impl Stats {
    /// Stats in which all counts are zero and claims are not paused. A backend fills in
    /// the rest.
    pub fn new() -> Self {
        Self::default()
    }

    /// Jobs that are not finished: ready, scheduled and leased.
    pub fn unfinished(&self) -> u64 {
        self.ready + self.scheduled + self.leased
    }
}
