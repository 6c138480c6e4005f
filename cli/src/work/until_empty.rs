//! When there is nothing left to work.

use std::time::Duration;

use relq::{Queue, RetryAdvice, Stats};
use tokio::time::sleep;

use crate::failure::explain;

/// Between two looks at a queue that is nearly empty, and at a full one.
const SHORTEST_LOOK: Duration = Duration::from_millis(50);
const LONGEST_LOOK: Duration = Duration::from_secs(1);

/// What ended the wait.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Found {
    Empty,
    Paused,
    /// The queue cannot be looked at, and trying again is of no use.
    Trouble(String),
}

/// Completes when nothing is ready or leased and nothing falls due within
/// `max_wait`, or when the queue is paused.
pub(super) async fn until_empty(queue: &dyn Queue, max_wait: Duration) -> Found {
    loop {
        let pause = match queue.stats().await {
            Ok(stats) if stats.paused => return Found::Paused,
            Ok(stats) if is_empty(&stats, max_wait) => return Found::Empty,
            Ok(stats) => until_next_look(&stats),
            Err(error) if error.retry_advice() == RetryAdvice::Never => {
                return Found::Trouble(explain(&error));
            }
            Err(error) => {
                tracing::warn!("{}; looking again", error.full_message());
                LONGEST_LOOK
            }
        };
        sleep(pause).await;
    }
}

fn is_empty(stats: &Stats, max_wait: Duration) -> bool {
    let is_due_soon = stats.next_due_in.is_some_and(|due| due <= max_wait);
    stats.ready == 0 && stats.leased == 0 && !is_due_soon
}

/// Many jobs take a while, and looking costs the store.
fn until_next_look(stats: &Stats) -> Duration {
    let by_jobs = Duration::from_millis(stats.unfinished());
    by_jobs.clamp(SHORTEST_LOOK, LONGEST_LOOK)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_queue_is_empty_when_nothing_will_come_in_time() {
        let second = Duration::from_secs(1);
        let scheduled = |next_due_in| {
            let mut stats = Stats::new();
            (stats.scheduled, stats.next_due_in) = (1, Some(next_due_in));
            stats
        };
        assert!(is_empty(&Stats::new(), Duration::ZERO));
        assert!(is_empty(&scheduled(second), Duration::ZERO));
        assert!(!is_empty(&scheduled(second), second));
        assert!(!is_empty(&scheduled(Duration::ZERO), Duration::ZERO));

        let mut leased = Stats::new();
        leased.leased = 1;
        assert!(!is_empty(&leased, Duration::ZERO));
    }
}
