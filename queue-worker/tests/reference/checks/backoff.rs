//! The pauses between calls that fail: at first 50 ms, each twice as long as the one
//! before, at most five seconds. A pause is drawn between its half and the whole.

use std::time::Duration;

const FIRST_PAUSE: Duration = Duration::from_millis(50);
pub(crate) const LONGEST_PAUSE: Duration = Duration::from_secs(5);

/// Failures in a row.
#[derive(Debug, Default)]
pub(crate) struct Failures(u32);

impl Failures {
    /// Counts a failure. Returns the longest pause after it.
    pub(crate) fn failed(&mut self) -> Duration {
        let doublings = self.0.min(10);
        self.0 += 1;
        (FIRST_PAUSE * 2_u32.pow(doublings)).min(LONGEST_PAUSE)
    }
}
