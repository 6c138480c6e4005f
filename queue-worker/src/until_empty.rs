//! Detects that the queues of a worker have no more work, for `run_until_empty`.

use std::{sync::Arc, time::Duration};

use relq_core::{
    Error, Operator, Stats,
    error::{Operation, RetryAdvice},
};

use crate::{WorkerError, settings::Settings};

/// The shortest pause between two reads of the queue's statistics.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two reads of the queue's statistics.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// Completes when, in all queues at the same time, no job is ready or leased, and no
/// scheduled job or retry becomes due within `max_wait`.
///
/// # Errors
/// [`WorkerError::Paused`] when a queue is paused, and [`WorkerError::Store`] when its
/// statistics cannot be read and a retry does not help.
pub(crate) async fn until_empty(
    queues: &[Arc<dyn Operator>],
    max_wait: Duration,
    settings: &Settings,
) -> Result<(), WorkerError> {
    loop {
        let pause = match look(queues, max_wait).await {
            Ok(Look::Empty(first))
                if are_still_empty(queues, &first, max_wait).await =>
            {
                return Ok(());
            }
            Ok(Look::Empty(_)) => SHORTEST_PAUSE,
            Ok(Look::Paused) => return Err(WorkerError::Paused),
            Ok(Look::Unfinished(stats)) => until_next_look(&stats),
            Err(error) => {
                settings.observers.call_failed(Operation::Stats, &error);
                pause_after(error)?
            }
        };
        settings.environment.clock().sleep(pause).await;
    }
}

/// What a look at each queue in turn has found.
enum Look {
    /// All queues were empty. Holds how many jobs of each had ended. Each part of a queue
    /// counts as a queue here.
    Empty(Vec<u64>),
    Paused,
    /// A queue has a job that is ready or leased, or that becomes due soon. Holds the
    /// statistics of that queue, or of its part.
    Unfinished(Stats),
}

async fn look(queues: &[Arc<dyn Operator>], max_wait: Duration) -> Result<Look, Error> {
    let mut ended = Vec::with_capacity(queues.len());
    for queue in queues {
        let parts = queue.stats_by_part().await?;
        if parts.iter().any(|stats| stats.paused) {
            return Ok(Look::Paused);
        }
        for stats in parts {
            if !is_empty(&stats, max_wait) {
                return Ok(Look::Unfinished(stats));
            }
            ended.push(stats.finished + stats.discarded + stats.cancelled + stats.dead);
        }
    }
    Ok(Look::Empty(ended))
}

/// Whether the queues were empty at the same time, at the end of the first look. A job of
/// a later queue may have pushed one to an earlier queue, after that queue was read. Then
/// that job is still there at a second look, or one more has ended. The parts of one queue
/// are not read at the same time either.
async fn are_still_empty(
    queues: &[Arc<dyn Operator>],
    first: &[u64],
    max_wait: Duration,
) -> bool {
    let is_same = |again: &Look| matches!(again, Look::Empty(ended) if ended == first);
    first.len() == 1 || look(queues, max_wait).await.is_ok_and(|it| is_same(&it))
}

fn pause_after(error: Error) -> Result<Duration, WorkerError> {
    if error.retry_advice() == RetryAdvice::Never {
        return Err(WorkerError::Store(error));
    }
    tracing::warn!("{}; looking again", error.full_message());
    Ok(LONGEST_PAUSE)
}

fn is_empty(stats: &Stats, max_wait: Duration) -> bool {
    let is_due_soon = stats.next_due_in.is_some_and(|due| due <= max_wait);
    stats.ready == 0 && stats.leased == 0 && !is_due_soon
}

/// The pause before the next read of the statistics. It grows with the number of jobs,
/// because each read costs the store.
fn until_next_look(stats: &Stats) -> Duration {
    let by_jobs = Duration::from_millis(stats.unfinished());
    by_jobs.clamp(SHORTEST_PAUSE, LONGEST_PAUSE)
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
