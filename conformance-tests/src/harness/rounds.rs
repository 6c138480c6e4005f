//! Tests in real time on a machine that other work may stop for a moment.

use std::time::Duration;

/// Asserts that a round takes less than `limit`. Repeats it a few times until one does: a
/// machine that stands still makes one round late, and a backend that only looks again after
/// its [`lateness`](relq_core::capabilities::Capabilities::lateness) makes every round late.
///
/// # Panics
/// If all rounds take too long.
pub async fn assert_within(limit: Duration, round: impl AsyncFn() -> Duration) {
    const ROUNDS: usize = 5;
    let mut fastest = Duration::MAX;
    for _ in 0..ROUNDS {
        fastest = fastest.min(round().await);
        if fastest < limit {
            return;
        }
    }
    panic!("the fastest of {ROUNDS} rounds took {fastest:?}, and not {limit:?}");
}
