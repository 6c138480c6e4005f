//! Runs a worker until its queues have no more work.
//!
//! The statistics do not count what a recovery has still to do: the completion job of a
//! batch that must be pushed to another queue (B5), or followers of a job that was cancelled
//! (R30). So queues whose statistics are empty are recovered until there is no more, and
//! must still be empty then.

mod last_recovery;

use std::{sync::Arc, time::Duration};

use relq_core::{
    Error, Operator, Stats,
    error::{Operation, RetryAdvice},
};

use tokio::sync::oneshot;

use self::last_recovery::LastRecovery;
use crate::{
    Handler, Summary, Worker, WorkerError, handler::AnyHandler, settings::Settings,
};

/// The shortest pause between two reads of the queue's statistics.
const SHORTEST_PAUSE: Duration = Duration::from_millis(50);
/// The longest pause between two reads of the queue's statistics.
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

impl Worker {
    /// Runs `handler` until the queue is empty or, as [`run`](Self::run) does, until
    /// asked to stop. Empty means that no job is ready, no job is leased by any worker,
    /// no scheduled job or retry becomes due within `max_wait`, and no work is left that
    /// [recovery](relq_core::ReliableQueue::recover) does. If recoveries fail again and
    /// again, the call does not wait for them. With [`Duration::MAX`] it waits for every
    /// retry.
    ///
    /// `queue` must be the worker's own queue: its statistics say whether it is empty. A
    /// worker on several queues uses [`run_until_all_empty`](Self::run_until_all_empty).
    ///
    /// ```
    /// # async fn example(
    /// #     queue: std::sync::Arc<dyn relq_core::Queue>,
    /// # ) -> Result<(), relq_worker::WorkerError> {
    /// # use std::time::Duration;
    /// # use relq_worker::{Failure, JobContext, Worker};
    /// let summary = Worker::new(queue.clone())
    ///     .run_until_empty(queue, Duration::MAX, async |job: JobContext| {
    ///         println!("{:?}", job.payload());
    ///         Ok::<_, Failure>(())
    ///     })
    ///     .await?;
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    /// [`WorkerError::Paused`] when the queue is paused, [`WorkerError::Store`] also
    /// when the store refuses to return its statistics, and the errors of
    /// [`run`](Self::run). The [`progress`](Self::progress) still has the counts.
    pub async fn run_until_empty<H: Handler>(
        self,
        queue: Arc<dyn Operator>,
        max_wait: Duration,
        handler: H,
    ) -> Result<Summary, WorkerError> {
        self.run_any_until_empty(vec![queue], max_wait, Arc::new(handler)).await
    }

    /// Runs `handler` until all `queues` are empty at the same time or, as
    /// [`run`](Self::run) does, until asked to stop. A job that a handler pushes to one
    /// of them is run too.
    ///
    /// `queues` must be the queues that the worker serves: their statistics say whether
    /// they are empty.
    ///
    /// # Errors
    /// The errors of [`run_until_empty`](Self::run_until_empty), such as
    /// [`WorkerError::Paused`] when one of the queues is paused.
    pub async fn run_until_all_empty<H: Handler>(
        self,
        queues: Vec<Arc<dyn Operator>>,
        max_wait: Duration,
        handler: H,
    ) -> Result<Summary, WorkerError> {
        self.run_any_until_empty(queues, max_wait, Arc::new(handler)).await
    }

    async fn run_any_until_empty(
        self,
        queues: Vec<Arc<dyn Operator>>,
        max_wait: Duration,
        handler: AnyHandler,
    ) -> Result<Summary, WorkerError> {
        let settings = self.settings.clone();
        let mut recovery = LastRecovery::of(&self.serves, &settings);
        let (tell, mut told) = oneshot::channel();
        let watch = async move {
            let ended = until_empty(&queues, max_wait, &mut recovery, &settings).await;
            // Ignore a failed send: the worker has ended by itself already.
            let _ = tell.send(ended);
        };
        let summary = Box::pin(self.stop_on(watch).run_any(handler)).await?;
        // There is no result if another request stopped the worker before the queue was
        // empty.
        told.try_recv().unwrap_or(Ok(())).map(|()| summary)
    }
}

/// Completes when, in all queues at the same time, no job is ready or leased, and no
/// scheduled job or retry becomes due within `max_wait`, also after a recovery.
///
/// # Errors
/// [`WorkerError::Paused`] when a queue is paused, and [`WorkerError::Store`] when its
/// statistics cannot be read and a retry does not help.
async fn until_empty(
    queues: &[Arc<dyn Operator>],
    max_wait: Duration,
    recovery: &mut LastRecovery,
    settings: &Settings,
) -> Result<(), WorkerError> {
    loop {
        let pause = match look(queues, max_wait).await {
            Ok(Look::Empty(_)) if !recovery.is_done().await => LONGEST_PAUSE,
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

/// The result of a look at each queue in turn.
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

/// Whether the queues were empty at the same time, at the end of the first look, and are
/// still empty after a recovery, which may have made jobs ready or pushed some. A job of a
/// later queue may have pushed one to an earlier queue, after that queue was read. Then
/// that job is still there at a second look, or one more has ended. The parts of one queue
/// are not read at the same time either.
async fn are_still_empty(
    queues: &[Arc<dyn Operator>],
    first: &[u64],
    max_wait: Duration,
) -> bool {
    let is_same = |again: &Look| matches!(again, Look::Empty(ended) if ended == first);
    look(queues, max_wait).await.is_ok_and(|it| is_same(&it))
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

    /// A store that is down must not get one call after the other.
    #[test]
    fn a_failed_look_is_followed_by_a_pause() {
        let at = relq_core::error::ErrorContext {
            backend: "test",
            operation: Operation::Stats,
        };
        let error = Error::Unavailable { at, source: "away".into() };

        assert_eq!(pause_after(error).unwrap(), LONGEST_PAUSE, "the pause");
    }
}
