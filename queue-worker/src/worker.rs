//! The public type of the worker, and the methods that set and run it.

use std::{
    fmt, future::Future, num::NonZeroU32, panic::resume_unwind, sync::Arc,
    time::Duration,
};

use relq_core::{ReliableQueue, WorkerId, environment::Environment};
use tracing::Instrument;

use crate::{
    AlreadyDone, Handler, Progress, Queues, RetryPolicy, Summary, WorkerError,
    abort_on_drop::AbortOnDrop,
    already_done::Check,
    handler::AnyHandler,
    lease_clock::LeaseClock,
    observer::Observer,
    serves::{Common, Serves},
    settings::Settings,
    shutdown::{Requests, Signals},
};

/// A worker on one queue, or on several.
///
/// It runs inside any program: it has no global state, handles no signal unless
/// [asked](Self::handle_signals), and ends when a [future](Self::stop_on) does.
///
/// ```
/// use std::{num::NonZeroU32, sync::Arc, time::Duration};
/// use relq_worker::{CancellationToken, Failure, JobContext};
/// use relq_worker::{RetryPolicy, Worker, WorkerError};
///
/// async fn send(job: JobContext) -> Result<(), Failure> {
///     println!("attempt {} of {}", job.attempt(), job.id());
///     Ok(())
/// }
///
/// async fn serve(
///     queue: Arc<dyn relq_core::ReliableQueue>,
///     shutdown: CancellationToken,
/// ) -> Result<(), WorkerError> {
///     let retry = RetryPolicy::exponential(
///         Duration::from_millis(200), // the longest wait after the first attempt
///         Duration::from_secs(600),   // the longest wait after any attempt
///     )?;
///     let worker = Worker::new(queue)
///         .concurrency(NonZeroU32::new(4).expect("not zero")) // handlers at once
///         .lease(Duration::from_secs(60)) // how long the jobs of a dead worker wait
///         .timeout(Duration::from_secs(300)) // of one attempt
///         .grace(Duration::from_secs(10)) // for running handlers at shutdown
///         .retry(retry)
///         .stop_on(shutdown.cancelled_owned());
///     let progress = worker.progress(); // counts that can be read while it runs
///     worker.run(send).await?;
///     println!("{} done", progress.summary().done);
///     Ok(())
/// }
/// ```
pub struct Worker {
    pub(crate) serves: Serves,
    id: Option<WorkerId>,
    pub(crate) settings: Settings,
    requests: Requests,
}

impl Worker {
    /// A worker on one queue, with default settings.
    pub fn new(queue: Arc<dyn ReliableQueue>) -> Self {
        Self::serving(Serves::One(queue))
    }

    /// A worker on several queues, with default settings. One handler runs the jobs of
    /// all: [`JobContext::queue`](crate::JobContext::queue) says which queue a job is of.
    ///
    /// The settings hold for each queue, except the [concurrency](Self::concurrency) and
    /// the [progress](Self::progress), which are those of the whole worker. An error that
    /// ends the worker on one queue ends it on all: the others stop gracefully.
    ///
    /// Each queue uses the connections that a worker on that queue alone uses. An idle
    /// queue [waits](ReliableQueue::wait_for_jobs) without a slot, and then claims.
    pub fn on(queues: Queues) -> Self {
        Self::serving(Serves::Several(queues))
    }

    fn serving(serves: Serves) -> Self {
        Self {
            serves,
            id: None,
            settings: Settings::default(),
            requests: Requests::default(),
        }
    }

    /// Sets how many handlers run at once, of all queues together; the default is 16.
    #[must_use]
    pub fn concurrency(mut self, concurrency: NonZeroU32) -> Self {
        self.settings.concurrency = concurrency;
        self
    }

    /// Claims up to `jobs` jobs before a handler is free for them, so that short jobs
    /// follow each other without a call to the store in between. The default is none:
    /// then each job waits in the store, where any worker can take it, until a handler is
    /// free.
    ///
    /// A prefetched job has a lease, which the heartbeats extend. If no handler takes it
    /// within half the [lease](Self::lease), and at shutdown, it is given back without
    /// counting an attempt. Beyond 4 MiB of waiting payloads nothing more is prefetched.
    /// All jobs that a worker holds run again if it dies (R9).
    ///
    /// It suits jobs that take less than a millisecond: a worker with one handler and a
    /// hundred prefetched jobs settles and claims many of them in one call. A worker on
    /// several queues cannot prefetch, and does not start.
    #[must_use]
    pub fn prefetch(mut self, jobs: NonZeroU32) -> Self {
        self.settings.prefetch = Some(jobs);
        self
    }

    /// Sets how long a job is held without a heartbeat, and so how long the jobs of a
    /// dead worker wait; the default is 30 seconds. The worker sends heartbeats every
    /// third of this time. A job may have its own lease length. With less than a
    /// millisecond the worker does not start.
    #[must_use]
    pub fn lease(mut self, lease: Duration) -> Self {
        self.settings.lease = lease;
        self
    }

    /// Sets how long one attempt may take; the default is no limit. An attempt that
    /// takes longer is dropped at its current `await` and counts as failed. With less
    /// than a millisecond the worker does not start.
    #[must_use]
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.settings.timeout = Some(timeout);
        self
    }

    /// Sets how long a failed job waits for its next attempt; the default is up to one
    /// second after the first attempt, doubled after each, and at most an hour.
    #[must_use]
    pub fn retry(mut self, policy: RetryPolicy) -> Self {
        self.settings.retry = policy;
        self
    }

    /// Sets how long running handlers may continue at shutdown; the default is 25
    /// seconds. The same time applies to a handler whose lease is lost or whose job is
    /// cancelled, and when the worker ends because its claims or its recoveries are
    /// refused. Afterwards the handler's future is dropped.
    #[must_use]
    pub fn grace(mut self, grace: Duration) -> Self {
        self.settings.grace = grace;
        self
    }

    /// Sets the longest time between two checks for expired leases; the default is half
    /// the lease, but between 1 and 30 seconds. A dead worker's jobs are ready again
    /// within their lease and this interval (R9). With less than a millisecond the worker
    /// does not start.
    #[must_use]
    pub fn reap_every(mut self, interval: Duration) -> Self {
        self.settings.reap_every = Some(interval);
        self
    }

    /// Sets how long the worker continues after an error that only a person can repair
    /// ([`Error::needs_help`]): revoked permissions, a replaced file, a replica that is
    /// not promoted. The default is 60 seconds. Then the worker ends with that error. A
    /// server of the wrong kind ends it at once.
    ///
    /// [`Error::needs_help`]: relq_core::Error::needs_help
    #[must_use]
    pub fn give_up_after(mut self, time: Duration) -> Self {
        self.settings.give_up_after = time;
        self
    }

    /// Calls `check`, such as an `async fn(JobContext) -> Result<bool, E>`, before each
    /// attempt whose number is above 1. If it returns that an earlier attempt did the work,
    /// the worker acknowledges the job without running the handler. The time-out covers the
    /// check too.
    ///
    /// Some attempts have the number 1 although the job has run before, in part or whole:
    /// those after an attempt that was postponed, that a shutdown cut off or whose
    /// settlement a shutdown gave up, those of a redriven dead letter, and those of a job
    /// that was exported during its first attempt and restored. The check is not called
    /// then, unless [`check_every_delivery`](Self::check_every_delivery) is set.
    ///
    /// ```
    /// use std::sync::Arc;
    /// use relq_core::ReliableQueue;
    /// use relq_worker::{Failure, JobContext, Worker};
    ///
    /// /// Looks in the table in which the handler records each payment.
    /// async fn is_paid(job: JobContext) -> Result<bool, Failure> {
    ///     Ok(is_recorded(job.id().as_str()).await)
    /// }
    ///
    /// fn payments(queue: Arc<dyn ReliableQueue>) -> Worker {
    ///     Worker::new(queue).already_done(is_paid).check_every_delivery()
    /// }
    /// # async fn is_recorded(_: &str) -> bool { true }
    /// ```
    #[must_use]
    pub fn already_done(mut self, check: impl AlreadyDone) -> Self {
        self.settings.already_done = Some(Check::new(check));
        self
    }

    /// Calls the [`already_done`](Self::already_done) check before every attempt, also
    /// before those with the number 1. For work that must not be repeated, such as a
    /// payment: the check then finds work of attempts that were not counted. It should look
    /// for the id of the job. Without such a check this has no effect.
    #[must_use]
    pub fn check_every_delivery(mut self) -> Self {
        self.settings.checks_every_delivery = true;
        self
    }

    /// Reports the worker's [events](crate::observer) to `observer`. May be called
    /// repeatedly: each observer receives every event.
    #[must_use]
    pub fn observe(mut self, observer: impl Observer) -> Self {
        self.settings.observers.add(observer);
        self
    }

    /// Sets the sources of time and randomness.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.settings.lease_clock = LeaseClock::new(environment.clone());
        self.settings.environment = environment;
        self
    }

    /// Sets the identity under which the worker holds jobs; the default is host,
    /// process and a random part. Two runs must not share an identity.
    #[must_use]
    pub fn worker_id(mut self, id: WorkerId) -> Self {
        self.id = Some(id);
        self
    }

    /// Stops gracefully when `request` completes: the worker claims no more, running
    /// handlers get the grace time, and the other jobs are given back (R24). May be
    /// called repeatedly; the first request to complete counts. For a
    /// [`CancellationToken`] pass `token.cancelled_owned()`.
    ///
    /// If a handler makes the request itself, it should return or await soon after.
    /// Until then its thread may block the worker.
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

    /// Stops hard when `request` completes: without the grace time, and with at most
    /// one second for each of the last calls to the store.
    #[must_use]
    pub fn halt_on(
        mut self,
        request: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        self.requests.halt.push(Box::pin(request));
        self
    }

    /// Takes over SIGINT and SIGTERM: the first signal stops gracefully, the second
    /// hard. From then on these signals do not kill the process, even after the worker
    /// has ended.
    ///
    /// It takes over no other signal, because an application may use them itself.
    /// SIGHUP, SIGQUIT, SIGUSR1 and similar signals end the process as before, and its
    /// jobs come back when their leases expire (R9). Use [`Self::stop_on`] to stop the
    /// worker on one of them, as the program `relq work` does for all of these.
    #[must_use]
    pub fn handle_signals(mut self) -> Self {
        self.requests.on_signals = Some(Signals);
        self
    }

    /// The counts of the worker's jobs and its state, which can be read while it runs.
    pub fn progress(&self) -> Progress {
        self.settings.observers.progress.clone()
    }

    /// Runs `handler` on the jobs of the queue or queues until asked to stop, and returns
    /// a summary.
    ///
    /// A store that is unavailable, restarting or failing over does not end the worker.
    /// The worker retries with growing pauses, up to five seconds, and logs this
    /// through `tracing`.
    ///
    /// Dropping the future ends the worker, and drops its handlers' futures, at their
    /// next `await`; the jobs come back when their leases expire (R22). Must be called
    /// on a tokio runtime.
    ///
    /// # Errors
    /// - [`WorkerError::Setting`] when a setting is not valid: a time is too short, or
    ///   above [`MAX_DURATION`](relq_core::limits::MAX_DURATION); or the worker has an
    ///   empty list of queues, two queues of one name, or several queues and
    ///   [`prefetch`](Self::prefetch). Nothing was sent.
    /// - [`WorkerError::Claim`] and [`WorkerError::Store`] when the store refuses the
    ///   worker and a retry cannot help: at once for the first claim, and for a later
    ///   call after [`give_up_after`](Self::give_up_after). On several queues the error is
    ///   the source of a [`WorkerError::Queue`], which names the queue.
    /// - [`WorkerError::NotReady`] when the handler will never be ready again.
    /// - [`WorkerError::Heartbeat`] and [`WorkerError::Signals`] when the operating
    ///   system refuses a thread or a signal handler.
    /// - [`WorkerError::Died`] when the backend panics in the background, or the runtime
    ///   is shut down.
    pub async fn run<H: Handler>(self, handler: H) -> Result<Summary, WorkerError> {
        self.run_any(Arc::new(handler)).await
    }

    pub(crate) async fn run_any(
        self,
        handler: AnyHandler,
    ) -> Result<Summary, WorkerError> {
        let Self { serves, id, settings, requests } = self;
        let progress = settings.observers.progress.clone();
        let _ends = progress.begin(serves.len());
        settings.check()?;
        if let Serves::Several(queues) = &serves {
            queues.check()?;
            settings.check_of_several()?;
        }
        let random = settings.environment.random();
        let worker = id.unwrap_or_else(|| WorkerId::of_this_process(random));
        let run = serves.run(Common { worker, settings }, handler, requests);
        // Run the worker on a task of the runtime. Otherwise an application that calls
        // `block_on` would run it on its own thread, and on a multi-threaded runtime
        // each wake-up would cross from a thread of the runtime to that thread.
        let task = tokio::spawn(run.in_current_span());
        let _abort = AbortOnDrop(task.abort_handle());
        let ended = task.await.unwrap_or_else(|error| match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            Err(_) => Err(WorkerError::Died("runtime")),
        });
        ended.map(|()| progress.summary())
    }
}

impl fmt::Debug for Worker {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.serves {
            Serves::One(queue) => write!(f, "Worker({queue})"),
            Serves::Several(queues) => write!(f, "Worker({queues:?})"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Failure, JobContext};

    /// The future of `run` is `Send`, so it can be spawned on any runtime.
    #[test]
    fn a_run_can_move_between_threads() {
        fn assert_send<T: Send>(_: impl FnOnce(Worker) -> T) {}
        assert_send(|worker| worker.run(async |_: JobContext| Ok::<_, Failure>(())));
    }
}
