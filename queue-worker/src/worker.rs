//! A worker and its settings.

use std::{
    fmt, future::Future, num::NonZeroU32, panic::resume_unwind, sync::Arc,
    time::Duration,
};

use relq_core::{Environment, Operator, ReliableQueue, WorkerId};
use tokio::sync::oneshot;
use tokio_util::task::AbortOnDropHandle;
use tracing::Instrument;

use crate::{
    AlreadyDone, Handler, Progress, RetryPolicy, Summary, WorkerError,
    already_done::Check,
    lease_clock::LeaseClock,
    run::Run,
    settings::Settings,
    shutdown::{Requests, Signals},
    until_empty::until_empty,
};

/// A worker on one queue.
///
/// It runs inside any program: it has no global state, handles no signal unless
/// [asked](Self::handle_signals), and ends when a [future](Self::stop_on) does.
pub struct Worker {
    queue: Arc<dyn ReliableQueue>,
    id: Option<WorkerId>,
    settings: Settings,
    requests: Requests,
    progress: Progress,
}

impl Worker {
    /// A worker with default settings.
    pub fn new(queue: Arc<dyn ReliableQueue>) -> Self {
        Self {
            queue,
            id: None,
            settings: Settings::default(),
            requests: Requests::default(),
            progress: Progress::default(),
        }
    }

    /// How many handlers run at once; 16 when not set.
    #[must_use]
    pub fn concurrency(mut self, concurrency: NonZeroU32) -> Self {
        self.settings.concurrency = concurrency;
        self
    }

    /// How long a job is held without a heartbeat, and so how long the jobs of a
    /// dead worker wait; 30 seconds when not set. Heartbeats come every third of it.
    /// A job may have a lease of its own. Less than a millisecond is refused.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// How long one attempt may take; no limit when not set. One that takes longer is
    /// dropped at its current `await` and counts as failed.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// When failed jobs are tried again.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.settings.retry = policy;
        self
    }

    /// How long running handlers may go on at shutdown; 25 seconds when not set. Also
    /// how long a handler may go on once its lease is lost or its job cancelled.
    /// Afterwards its future is dropped.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// The longest time between two looks for expired leases; half the lease, but
    /// between 1 and 30 seconds, when not set. A dead worker's jobs are ready again
    /// within their lease and this interval (R9).
    #[must_use]
    pub fn reap_every(mut self, interval: Duration) -> Self {
        self.settings.reap_every = Some(interval);
        self
    }

    /// How long the worker goes on while the store refuses it in a way that only
    /// somebody's help mends ([`Error::needs_help`]): permissions taken away, a file
    /// that was replaced, a replica that is not promoted; 60 seconds when not set. Then
    /// it ends with that error. A server of the wrong kind ends it at once.
    ///
    /// [`Error::needs_help`]: relq_core::Error::needs_help
    #[must_use]
    pub fn give_up_after(mut self, time: Duration) -> Self {
        self.settings.give_up_after = time;
        self
    }

    /// Asks `check`, for jobs that are delivered again and for no others, whether the
    /// work was done by an earlier attempt; then they are acknowledged without
    /// running. The time-out covers the check too.
    #[must_use]
    pub fn already_done(mut self, check: impl AlreadyDone) -> Self {
        self.settings.already_done = Some(Check::new(check));
        self
    }

    /// Where the worker takes time and randomness from.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.settings.environment = environment;
        self
    }

    /// The identity under which the worker holds jobs; host, process and a random
    /// part when not set. No two runs may share one.
    #[must_use]
    pub fn worker_id(mut self, id: WorkerId) -> Self {
        self.id = Some(id);
        self
    }

    /// Stops in good order when `request` completes: no new claims, the grace time
    /// for running handlers, the rest given back (R24). May be called repeatedly;
    /// the first to complete counts. For a [`CancellationToken`] pass
    /// `token.cancelled_owned()`.
    ///
    /// A handler that makes the request itself should return or await soon after: until
    /// then its thread may hold back the worker that it has woken.
    ///
    /// [`CancellationToken`]: crate::CancellationToken
    #[must_use]
    pub fn stop_on(
        mut self,
        request: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        self.requests.stop.push(Box::pin(request));
        self
    }

    /// Stops hard when `request` completes: without the grace time, and with a second
    /// at most for each of the last calls to the store.
    #[must_use]
    pub fn halt_on(
        mut self,
        request: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        self.requests.halt.push(Box::pin(request));
        self
    }

    /// Takes over SIGINT and SIGTERM: the first stops in good order, the second hard.
    /// The process does not die of them by itself any more, also after the worker's
    /// end.
    ///
    /// It takes over no other signal, since an application may have its own use for it:
    /// SIGHUP, SIGQUIT, SIGUSR1 and the like end the process as before, and what it held
    /// comes back when its lease runs out (R22). [`Self::stop_on`] makes one of them stop
    /// the worker, as the program `relq work` does for all of these.
    #[must_use]
    pub fn handle_signals(mut self) -> Self {
        self.requests.on_signals = Some(Signals);
        self
    }

    /// A view of the worker's counts, to be read while it runs.
    pub fn progress(&self) -> Progress {
        self.progress.clone()
    }

    /// Runs `handler` on the queue's jobs until asked to stop, and sums up.
    ///
    /// A store that is away, restarting or failing over does not end it: it tries
    /// again with growing pauses, up to five seconds, and says so through `tracing`.
    ///
    /// Dropping the future ends the worker, and drops its handlers' futures, at their
    /// next `await`; what was held comes back when its lease runs out (R22). Must be
    /// called on a tokio runtime.
    ///
    /// # Errors
    /// [`WorkerError::Setting`] before anything is sent, [`WorkerError::Claim`] and
    /// [`WorkerError::Store`] when the store refuses the worker in a way that no retry
    /// mends: the first claim at once, a later call after
    /// [`give_up_after`](Self::give_up_after), [`WorkerError::Heartbeat`]
    /// and [`WorkerError::Signals`] when the system refuses what they need, and
    /// [`WorkerError::Died`] when the backend panics in the background.
    pub async fn run<H: Handler>(self, handler: H) -> Result<Summary, WorkerError> {
        let Self { queue, id, mut settings, requests, progress } = self;
        settings.check()?;
        let clock = LeaseClock::new(settings.environment.clone());
        settings.environment = settings.environment.with_clock(Arc::new(clock.clone()));
        let random = settings.environment.random();
        let worker = id.unwrap_or_else(|| WorkerId::of_this_process(random));
        let run = Run { queue, worker, settings, clock, progress };
        // A task, and not the caller's: on a runtime of many threads the future that it
        // is blocked on runs on a thread of its own, and each wake-up would cross over.
        let run = run.until_asked(handler, requests).in_current_span();
        AbortOnDropHandle::new(tokio::spawn(run)).await.unwrap_or_else(|error| {
            match error.try_into_panic() {
                Ok(panic) => resume_unwind(panic),
                Err(_) => Err(WorkerError::Died("runtime")),
            }
        })
    }

    /// Runs `handler` until the queue is empty, or as [`run`](Self::run) until asked to
    /// stop. Empty means that nothing is ready or leased, by this worker or another, and
    /// that no scheduled job or retry falls due within `max_wait`. With
    /// [`Duration::MAX`] every retry is waited for.
    ///
    /// `queue` is the operator's side of the queue that the worker is on.
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
    /// [`WorkerError::Paused`] when the queue is paused, [`WorkerError::Store`] also when
    /// the store refuses to tell its figures, and those of [`run`](Self::run). The
    /// [`progress`](Self::progress) still says what was done.
    pub async fn run_until_empty<H: Handler>(
        self,
        queue: Arc<dyn Operator>,
        max_wait: Duration,
        handler: H,
    ) -> Result<Summary, WorkerError> {
        let environment = self.settings.environment.clone();
        let (tell, mut told) = oneshot::channel();
        let watch = async move {
            let ended = until_empty(&*queue, max_wait, &environment).await;
            // Nobody listens when the worker has ended by itself.
            let _ = tell.send(ended);
        };
        let summary = Box::pin(self.stop_on(watch).run(handler)).await?;
        // Nothing was told when something else has asked the worker to stop.
        told.try_recv().unwrap_or(Ok(())).map(|()| summary)
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Worker({})", self.queue)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Failure, JobContext};

    /// A worker can be spawned on any runtime.
    #[test]
    fn a_run_can_move_between_threads() {
        fn assert_send<T: Send>(_: impl FnOnce(Worker) -> T) {}
        assert_send(|worker| worker.run(async |_: JobContext| Ok::<_, Failure>(())));
    }
}
