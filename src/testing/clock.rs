//! The clock and the randomness of a queue for tests.

use std::{
    future::Future,
    pin::Pin,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use relq_core::environment::{Clock, OsRandomness, Randomness, SystemClock, Timestamp};

/// A clock whose time of day changes only when a test advances it. Its steady time also
/// follows the real time, so that waits in the code under test end.
#[derive(Debug)]
pub(super) struct TestClock {
    started: Timestamp,
    advanced: Mutex<Duration>,
}

impl TestClock {
    pub(super) fn new() -> Self {
        Self { started: SystemClock.now(), advanced: Mutex::default() }
    }

    pub(super) fn advance(&self, duration: Duration) {
        let mut advanced = self.advanced.lock().unwrap_or_else(PoisonError::into_inner);
        *advanced = advanced.saturating_add(duration);
    }

    fn advanced(&self) -> Duration {
        *self.advanced.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Clock for TestClock {
    fn now(&self) -> Timestamp {
        self.started.plus(self.advanced())
    }

    fn elapsed(&self) -> Duration {
        SystemClock.elapsed().saturating_add(self.advanced())
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        SystemClock.sleep(duration)
    }
}

/// Randomness of the system, except that each jitter is the longest. So a retry waits for
/// exactly the time of its policy, and a test knows how far to advance the clock.
#[derive(Debug)]
pub(super) struct LongestJitter;

impl Randomness for LongestJitter {
    fn fill(&self, bytes: &mut [u8]) {
        OsRandomness.fill(bytes);
    }

    fn fraction(&self) -> f64 {
        1.0 - f64::EPSILON
    }
}
