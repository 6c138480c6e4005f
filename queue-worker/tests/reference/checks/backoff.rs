//! The pauses that the checks expect between failed calls: the first is 50 ms at most,
//! each next one twice as long, up to five seconds. The worker draws each pause between
//! half of this maximum and all of it.

use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// The number of failures without a success between them.
#[derive(Debug, Default)]
pub(crate) struct Failures(u32);

impl Failures {
    /// Counts a failure. Returns the longest pause that the worker may make after it.
    pub(crate) fn failed(&mut self) -> Duration {
        let doublings = self.0.min(10);
        self.0 += 1;
        (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
    }
}
