//! When a job was claimed, and when its attempt started and ended.

use std::{sync::OnceLock, time::Duration};

/// The times of one delivery, by the steady clock. They are set only if the worker has
/// an observer.
#[derive(Debug, Default)]
pub(crate) struct Timing {
    claimed: OnceLock<Duration>,
    started: OnceLock<Duration>,
    ended: OnceLock<Duration>,
}

impl Timing {
    pub(crate) fn claimed_at(&self, now: Duration) {
        self.claimed.get_or_init(|| now);
    }

    /// Sets the start of the attempt. Returns how long the job has waited for it.
    pub(crate) fn started_at(&self, now: Duration) -> Duration {
        self.started.get_or_init(|| now);
        self.claimed
            .get()
            .map_or(Duration::ZERO, |claimed| now.saturating_sub(*claimed))
    }

    /// Sets the end of the attempt. A second call changes nothing.
    pub(crate) fn ended_at(&self, now: Duration) {
        self.ended.get_or_init(|| now);
    }

    /// How long the attempt ran. `None` if it did not start.
    pub(crate) fn ran(&self) -> Option<Duration> {
        let (started, ended) = (self.started.get()?, self.ended.get()?);
        Some(ended.saturating_sub(*started))
    }
}
