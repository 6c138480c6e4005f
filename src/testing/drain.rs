//! Runs the due jobs of a queue for tests, and reports what ran.

use std::{
    fmt::Write as _,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use relq_core::{
    Bytes, JobId, Operator as _, ReliableQueue as _, Stats, environment::Clock as _,
};
use relq_memory::MemoryQueue;
use relq_worker::{
    Handler, Worker,
    observer::{Ended, JobOutcome, Observer},
};

use super::{TestQueue, clock::TestClock};

/// How many attempts one [`drain`](TestQueue::drain) runs at most. A handler that pushes
/// a job like its own would otherwise run forever.
pub const MAX_RUNS: usize = 10_000;

/// How often a drain looks whether a due job is left.
const LOOK: Duration = Duration::from_millis(1);

/// The attempts that a [`drain`](TestQueue::drain) ran.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
#[non_exhaustive]
pub struct Drained {
    /// Each attempt, in the order in which they ran.
    pub ran: Vec<Ran>,
}

/// One attempt at a job.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Ran {
    /// The id of the job.
    pub id: JobId,
    /// The payload of the job.
    pub payload: Bytes,
    /// The job's kind; `None` for a job without one.
    pub kind: Option<String>,
    /// The number of this attempt, from 1.
    pub attempt: u32,
    /// How the attempt ended.
    pub outcome: Outcome,
    /// The result that the handler has set, if the attempt is done and the job keeps its
    /// result (R29). An attempt that sets none has an empty one.
    pub result: Option<Bytes>,
}

/// How an attempt ended.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub enum Outcome {
    /// The handler returned `Ok`.
    Done,
    /// The attempt failed, and the job is retried.
    Retried {
        /// How long the job waits for its next attempt.
        after: Duration,
        /// Why the attempt failed.
        error: String,
    },
    /// The attempt failed, and the job is a dead letter.
    Buried {
        /// Why the attempt failed.
        error: String,
    },
    /// The handler asked to remove the job.
    Discarded,
    /// The handler postponed the job, and the attempt is not counted (R26).
    Postponed {
        /// How long until the job is ready again.
        after: Duration,
    },
    /// The worker did not settle the job. The text is the reason in one word, such as
    /// `lost` or `cancelled`. A test causes this when it cancels a running job or
    /// advances the clock past its lease.
    NotSettled(&'static str),
}

impl Drained {
    /// Panics unless each attempt was done. The message lists the other attempts with
    /// their errors.
    ///
    /// A panic in a handler, as of an assertion, is a failed attempt like any other, so a
    /// test that asserts in a handler needs this call.
    ///
    /// # Panics
    /// If an attempt was not done.
    #[track_caller]
    pub fn assert_all_done(&self) {
        let failed: Vec<_> =
            self.ran.iter().filter(|ran| ran.outcome != Outcome::Done).collect();
        if failed.is_empty() {
            return;
        }
        let (not_done, all) = (failed.len(), self.ran.len());
        let mut message = format!("{not_done} of {all} attempts were not done:");
        for Ran { payload, kind, attempt, outcome, .. } in failed {
            let kind = kind.as_ref().map(|kind| format!("{kind} ")).unwrap_or_default();
            write!(message, "\n  {kind}{payload:?}, attempt {attempt}: {outcome:?}")
                .expect("writing to a string cannot fail");
        }
        panic!("{message}");
    }
}

impl TestQueue {
    /// Runs `handler` on all due jobs, one after the other in the order of the queue,
    /// until none is left: also on the jobs that handlers push, on retries that are due,
    /// and on jobs whose lease has expired. Retries and delayed jobs that are due later
    /// stay, until the test [advances](Self::advance) the clock.
    ///
    /// A retry waits for exactly the time that its policy names for the attempt, without
    /// jitter: a second after the first attempt, two after the second, and so on,
    /// unless the handler or [`drain_with`](Self::drain_with) sets another policy.
    ///
    /// Must be called on a tokio runtime.
    ///
    /// # Panics
    /// If the queue is paused, and if due jobs are left after [`MAX_RUNS`] attempts.
    pub async fn drain(&self, handler: impl Handler) -> Drained {
        self.drain_with(handler, |worker| worker).await
    }

    /// Does the same as [`drain`](Self::drain) with a worker that has other settings.
    ///
    /// ```
    /// use std::time::Duration;
    /// use relq::worker::{Failure, JobContext, RetryPolicy};
    /// use relq::{ReliableQueueExt, testing::TestQueue};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let queue = TestQueue::new();
    /// queue.queue().push_one("hello".into()).await?;
    ///
    /// let minute = Duration::from_secs(60);
    /// let policy = RetryPolicy::exponential(minute, minute)?;
    /// let busy = async |_: JobContext| Err::<(), _>(Failure::retry("busy"));
    /// queue.drain_with(busy, |worker| worker.retry(policy)).await;
    ///
    /// queue.advance(minute);
    /// assert_eq!(queue.drain(busy).await.ran[0].attempt, 2);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Panics
    /// When `drain` panics, and if the worker refuses its settings.
    pub async fn drain_with(
        &self,
        handler: impl Handler,
        settings: impl FnOnce(Worker) -> Worker,
    ) -> Drained {
        self.recover().await;
        let record = Record::default();
        let nothing_left = nothing_left(
            Arc::clone(&self.queue),
            Arc::clone(&self.clock),
            record.clone(),
        );
        let worker = settings(Worker::new(self.queue.clone()))
            .environment(self.environment())
            .concurrency(NonZeroU32::MIN)
            .observe(record.clone())
            .stop_on(nothing_left);
        worker.run(handler).await.expect("a worker on a queue in memory does not fail");
        let stats = self.queue.stats().await.expect("a read in memory does not fail");
        assert!(!stats.paused, "the queue is paused, so no job runs; resume it first");
        let ran = record.take();
        assert!(
            ran.len() < MAX_RUNS || !is_due(&stats),
            "{MAX_RUNS} attempts ran, and due jobs are left; the last one is {:?}",
            ran.last(),
        );
        Drained { ran }
    }
}

impl TestQueue {
    /// Makes jobs ready whose lease has expired, as the code under test may have left
    /// them. The worker would recover them only after some seconds.
    async fn recover(&self) {
        let recovered = self.queue.recover(NonZeroU32::MAX).await;
        recovered.expect("a recovery in memory does not fail");
    }
}

/// Completes when no due job is left and the worker holds none, when the queue is paused,
/// or after too many runs. Jobs that the test itself holds do not count.
async fn nothing_left(queue: Arc<MemoryQueue>, clock: Arc<TestClock>, record: Record) {
    let mut held = None;
    loop {
        let stats = queue.stats().await.expect("a read in memory does not fail");
        let held = *held.get_or_insert(stats.leased);
        if stats.paused || record.is_full() || (stats.leased <= held && !is_due(&stats))
        {
            return;
        }
        clock.sleep(LOOK).await;
    }
}

fn is_due(stats: &Stats) -> bool {
    stats.ready > 0 || stats.next_due_in.is_some_and(|due| due.is_zero())
}

/// The attempts that have ended, as an observer of the worker.
#[derive(Debug, Clone, Default)]
struct Record(Arc<Mutex<Vec<Ran>>>);

impl Record {
    fn is_full(&self) -> bool {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).len() >= MAX_RUNS
    }

    fn take(&self) -> Vec<Ran> {
        std::mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Observer for Record {
    fn ended(&self, event: &Ended<'_>) {
        // A job that was not started is claimed again.
        if event.ran.is_none() {
            return;
        }
        let job = event.job;
        let is_kept = event.outcome == JobOutcome::Done && job.keeps_result();
        let ran = Ran {
            id: job.id().clone(),
            payload: job.payload().clone(),
            kind: job.kind().map(ToOwned::to_owned),
            attempt: job.attempt(),
            outcome: event.outcome.into(),
            result: is_kept.then(|| job.result().unwrap_or_default()),
        };
        self.0.lock().unwrap_or_else(PoisonError::into_inner).push(ran);
    }
}

impl From<JobOutcome<'_>> for Outcome {
    fn from(outcome: JobOutcome<'_>) -> Self {
        match outcome {
            JobOutcome::Done => Self::Done,
            JobOutcome::Retried { after, error } => {
                Self::Retried { after, error: error.to_owned() }
            }
            JobOutcome::Buried { error } => Self::Buried { error: error.to_owned() },
            JobOutcome::Discarded => Self::Discarded,
            JobOutcome::Postponed { after } => Self::Postponed { after },
            other => Self::NotSettled(other.name()),
        }
    }
}
