//! The slots of a worker: one for each handler that may run at once.
//!
//! A worker on several queues has these slots for each queue, as many as the queue may
//! use, and a [pool](crate::slot_pool) of the slots that all its queues share.

use std::{
    collections::{HashMap, VecDeque},
    future::pending,
    num::NonZeroU32,
    sync::Arc,
    time::Duration,
};

use tokio::task::{Id, JoinError, JoinSet};
use tracing::{Instrument, Span};

use crate::{
    Cancellation, Failure, JobContext, Progress, RetryPolicy,
    attempt::{Ended, Program},
    calls::slots,
    panics,
    readiness::{Changes, Readiness, Unstarted},
    slot_pool::{Demand, PoolMember},
    span,
};

/// The running handlers, each on a task, and the number of free slots. Dropping this
/// value drops the handlers' futures.
pub(crate) struct Slots {
    capacity: usize,
    /// The most jobs that run or wait for a slot.
    most_held: usize,
    program: Arc<Program>,
    tasks: JoinSet<Ended>,
    jobs: HashMap<Id, RunningJob>,
    readiness: Readiness,
    /// The place in the pool of a worker on several queues. `None` for a worker on one.
    pool: Option<PoolMember>,
    /// Leased jobs that wait for a slot, in the order of their claims.
    waiting: VecDeque<Waiting>,
    /// How many bytes the payloads of the waiting jobs have.
    waiting_bytes: usize,
    /// How many jobs have started since the last report to the pool.
    started: usize,
}

struct Waiting {
    job: JobContext,
    unstarted: Unstarted,
    /// When the claim of the job was sent.
    since: Duration,
}

struct RunningJob {
    job: JobContext,
    span: Span,
}

/// Counts a handler that runs, until its future has ended or is dropped. A handler that blocks
/// its thread outlives its slot.
struct CountedRun(Progress);

impl Slots {
    pub(crate) fn new(
        program: Program,
        pool: Option<PoolMember>,
        readiness: Readiness,
    ) -> Self {
        let capacity =
            usize::try_from(program.settings.concurrency.get()).unwrap_or(usize::MAX);
        let ahead = program.settings.prefetch.map_or(0, slots);
        Self {
            capacity,
            most_held: capacity.saturating_add(ahead),
            program: Arc::new(program),
            tasks: JoinSet::new(),
            jobs: HashMap::new(),
            readiness,
            pool,
            waiting: VecDeque::new(),
            waiting_bytes: 0,
            started: 0,
        }
    }

    pub(crate) fn capacity(&self) -> usize {
        self.capacity
    }

    /// The most jobs that run or wait for a slot at any time: one for each slot, and
    /// those that the worker was asked to prefetch.
    pub(crate) fn most_held(&self) -> usize {
        self.most_held
    }

    /// How many jobs run, or have a lease and wait for a slot.
    pub(crate) fn held(&self) -> usize {
        self.jobs.len() + self.waiting.len()
    }

    pub(crate) fn free(&self) -> usize {
        self.capacity.saturating_sub(self.held())
    }

    /// Whether one more job may run or wait.
    pub(crate) fn have_place(&self) -> bool {
        self.held() < self.most_held
    }

    /// Whether several queues share the slots.
    pub(crate) fn are_pooled(&self) -> bool {
        self.pool.is_some()
    }

    /// The place of the queue in the pool, if several queues share the slots.
    pub(crate) fn pool(&self) -> Option<&PoolMember> {
        self.pool.as_ref()
    }

    /// Returns how many jobs may be claimed now: without a pool, as many as `demand`
    /// wants; with a pool, as many as it grants beyond the waiting leased jobs, which
    /// start first. The pool receives `demand` with the current counts of these slots.
    pub(crate) fn reserve(&mut self, demand: Demand) -> usize {
        let Some(pool) = &self.pool else { return demand.wanted };
        let mut granted = pool.report(Demand {
            running: self.jobs.len(),
            waiting: self.waiting.len(),
            started: std::mem::take(&mut self.started),
            ..demand
        });
        while granted > 0 && !self.waiting.is_empty() {
            self.take(1);
            self.start_first();
            granted -= 1;
        }
        granted
    }

    /// Uses this number of the reserved slots.
    pub(crate) fn take(&self, slots: usize) {
        if let Some(pool) = &self.pool {
            pool.take(slots);
        }
    }

    /// Starts the job as soon as it gets a slot. Its claim was sent at `since`.
    pub(crate) fn start_later(&mut self, job: JobContext, since: Duration) {
        let unstarted = self.readiness.unstarted();
        self.waiting_bytes += job.payload().len();
        self.waiting.push_back(Waiting { job, unstarted, since });
    }

    /// Starts the first of the waiting jobs if a slot is free. Returns whether it did.
    pub(crate) fn start_waiting(&mut self) -> bool {
        self.jobs.len() < self.capacity && self.start_first()
    }

    /// The bytes of the payloads of the waiting jobs.
    pub(crate) fn waiting_bytes(&self) -> usize {
        self.waiting_bytes
    }

    /// When the claim of the first waiting job was sent. `None` if no job waits.
    pub(crate) fn waits_since(&self) -> Option<Duration> {
        self.waiting.front().map(|waiting| waiting.since)
    }

    /// Removes and returns the first waiting job if its claim was sent by `since`.
    pub(crate) fn take_waiting_since(&mut self, since: Duration) -> Option<JobContext> {
        self.waiting.front().filter(|waiting| waiting.since <= since)?;
        self.take_first().map(|waiting| waiting.job)
    }

    /// Removes and returns the jobs that wait for a slot.
    pub(crate) fn take_waiting(&mut self) -> impl Iterator<Item = JobContext> + use<> {
        self.waiting_bytes = 0;
        std::mem::take(&mut self.waiting).into_iter().map(|waiting| waiting.job)
    }

    fn start_first(&mut self) -> bool {
        let Some(Waiting { job, unstarted, .. }) = self.take_first() else {
            return false;
        };
        self.spawn(job, unstarted);
        true
    }

    fn take_first(&mut self) -> Option<Waiting> {
        let first = self.waiting.pop_front()?;
        self.waiting_bytes -= first.job.payload().len();
        Some(first)
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// Makes the handler ready for up to `wanted` further jobs, which are claimed now.
    /// Returns for how many of them it is ready.
    pub(crate) fn make_ready(&mut self, wanted: NonZeroU32) -> Option<NonZeroU32> {
        self.readiness.reserve(&*self.program.handler, wanted)
    }

    /// Reports how many jobs the pending claims may return.
    pub(crate) fn report_asked(&mut self, asked: usize) {
        self.readiness.report_asked(asked);
    }

    /// The changes of the handler's readiness.
    pub(crate) fn readiness_changes(&self) -> Changes {
        self.readiness.changes()
    }

    pub(crate) fn start(&mut self, job: JobContext) {
        let unstarted = self.readiness.unstarted();
        self.spawn(job, unstarted);
    }

    fn spawn(&mut self, job: JobContext, unstarted: Unstarted) {
        let program = Arc::clone(&self.program);
        let running = job.clone();
        let span = span::open(&job);
        program.settings.observers.span_opened(&job, &span);
        let counted = CountedRun::new(&program.settings.observers.progress);
        let attempt = async move {
            let _counted = counted;
            program.attempt(running, unstarted).await
        };
        let task = self.tasks.spawn(attempt.instrument(span.clone()));
        self.jobs.insert(task.id(), RunningJob { job, span });
        self.started += 1;
    }

    /// Waits until an attempt ends. Never completes if no handler runs.
    pub(crate) async fn next_ended(&mut self) -> (JobContext, Ended) {
        loop {
            match self.tasks.join_next_with_id().await {
                Some(joined) => {
                    if let Some(ended) = self.ended(joined) {
                        return ended;
                    }
                }
                None => pending().await,
            }
        }
    }

    /// Returns an attempt that has ended already. `None` if there is none.
    pub(crate) fn try_ended(&mut self) -> Option<(JobContext, Ended)> {
        let joined = self.tasks.try_join_next_with_id()?;
        self.ended(joined)
    }

    /// The policy by which a failed `job` is retried: that of the worker, if the handler
    /// has none or panics. A panic must not end the claim loop, because the jobs that the
    /// worker holds would run again.
    pub(crate) fn retry_policy(&self, job: &JobContext) -> RetryPolicy {
        let Program { handler, settings } = &*self.program;
        let own = panics::caught(|| handler.retry_policy(job)).unwrap_or_else(|panic| {
            let id = job.id();
            tracing::error!(%id, panic, "retry_policy panicked; the worker's counts");
            None
        });
        own.unwrap_or(settings.retry)
    }

    /// Drops every handler's future at its next `await`, and cancels the token of every
    /// running job.
    pub(crate) fn cut_off(&mut self) {
        // Abort before the tokens fire. Otherwise another thread may poll a handler whose
        // token has fired, and if that handler returns an error, the attempt counts (R24).
        self.tasks.abort_all();
        let running = self.jobs.values();
        running.for_each(|running| running.job.cancel(Cancellation::ShutDown));
    }

    /// Removes and returns the jobs whose handlers still run after they were cut off.
    /// Such a handler blocks its thread and cannot be stopped.
    pub(crate) fn take_stuck(&mut self) -> Vec<JobContext> {
        self.jobs.drain().map(|(_, running)| running.job).collect()
    }

    fn ended(
        &mut self,
        joined: Result<(Id, Ended), JoinError>,
    ) -> Option<(JobContext, Ended)> {
        let (id, ended) = match joined {
            Ok((id, ended)) => (id, ended),
            Err(error) => (error.id(), without_answer(error)),
        };
        let RunningJob { job, span } = self.jobs.remove(&id)?;
        if let Ended::Answered(Err(failure)) = &ended {
            span::failed(&span, failure);
        }
        Some((job, ended))
    }
}

impl CountedRun {
    fn new(progress: &Progress) -> Self {
        progress.one_more_runs();
        Self(progress.clone())
    }
}

impl Drop for CountedRun {
    fn drop(&mut self) {
        self.0.one_less_runs();
    }
}

fn without_answer(error: JoinError) -> Ended {
    match error.try_into_panic() {
        Ok(panic) => {
            let words = panics::message(&*panic);
            Ended::Answered(Err(Failure::retry(format!(
                "the handler panicked: {words}"
            ))))
        }
        Err(_) => Ended::CutOff,
    }
}

#[cfg(test)]
mod tests {
    use std::{
        task::{Context, Wake, Waker},
        time::Duration,
    };

    use futures_lite::future::or;
    use relq_core::{Delivery, JobId, Receipt};
    use tokio::sync::Semaphore;

    use super::*;
    use crate::{
        Handler,
        settings::Settings,
        slot_pool::{SlotPool, Turns},
    };

    fn job() -> JobContext {
        job_with("")
    }

    fn job_with(payload: &'static str) -> JobContext {
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        JobContext::new(Delivery::new(receipt, payload, Duration::from_secs(30)))
    }

    /// A handler whose policy cannot be made.
    struct WithoutPolicy;

    impl Handler for WithoutPolicy {
        async fn handle(&self, _: JobContext) -> Result<(), Failure> {
            Ok(())
        }

        fn retry_policy(&self, _: &JobContext) -> Option<RetryPolicy> {
            panic!("no such policy");
        }
    }

    /// The policy is code of the application, and runs on the task of the claim loop.
    #[tokio::test]
    async fn the_policy_of_the_worker_counts_if_that_of_the_handler_panics() {
        let week = Duration::from_secs(7 * 24 * 3600);
        let retry = RetryPolicy::exponential(week, week).unwrap();
        let settings = Settings { retry, ..Settings::default() };
        let program = Program { handler: Arc::new(WithoutPolicy), settings };
        let slots = Slots::new(program, None, Readiness::default());

        assert_eq!(slots.retry_policy(&job()), retry);
    }

    /// A handler may have given its token to another task, which ends only when the
    /// token fires. So the token fires also when the handler itself is dropped.
    #[tokio::test]
    async fn a_cut_off_cancels_the_token_of_each_job() {
        let handler = Arc::new(|_: JobContext| pending::<Result<(), Failure>>());
        let program = Program { handler, settings: Settings::default() };
        let job = job();
        let mut slots = Slots::new(program, None, Readiness::default());
        slots.start(job.clone());

        slots.cut_off();

        assert_eq!(job.cancellation(), Some(Cancellation::ShutDown), "the reason");
        assert!(matches!(slots.next_ended().await.1, Ended::CutOff), "it was cut off");
    }

    /// The worker bounds the bytes of the jobs that it claims ahead. Jobs that were started
    /// or given back must not count.
    #[tokio::test]
    async fn the_payloads_of_waiting_jobs_are_counted() {
        let handler = Arc::new(|_: JobContext| pending::<Result<(), Failure>>());
        let program = Program { handler, settings: Settings::default() };
        let mut slots = Slots::new(program, None, Readiness::default());
        for _ in 0..3 {
            slots.start_later(job_with("ten bytes."), Duration::ZERO);
        }

        assert_eq!(slots.waiting_bytes(), 30);
        assert!(slots.start_waiting());
        assert_eq!(slots.waiting_bytes(), 20);
        assert!(slots.take_waiting_since(Duration::ZERO).is_some());
        assert_eq!(slots.waiting_bytes(), 10);
        assert_eq!(slots.take_waiting().count(), 1);
        assert_eq!(slots.waiting_bytes(), 0);
    }

    /// A handler that fails when its token fires. It adds a permit when it listens to the
    /// token.
    struct FailsWhenCancelled(Semaphore);

    impl Handler for FailsWhenCancelled {
        async fn handle(&self, job: JobContext) -> Result<(), Failure> {
            let listens = async {
                self.0.add_permits(1);
                pending::<()>().await;
            };
            or(job.cancelled(), listens).await;
            Err(Failure::retry("cancelled"))
        }
    }

    /// A waker that takes its time, as a waker of the application may.
    struct SlowWaker;

    impl Wake for SlowWaker {
        fn wake(self: Arc<Self>) {
            std::thread::sleep(Duration::from_millis(50));
        }
    }

    /// R24: a handler that returns an error when its token fires is cut off like any other,
    /// so that no attempt is counted. Other threads of the runtime may poll such a handler
    /// while the tokens of the other jobs fire, one after the other.
    #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
    async fn a_handler_that_is_cut_off_fails_no_attempt() {
        const JOBS: u32 = 8;
        let handler = Arc::new(FailsWhenCancelled(Semaphore::new(0)));
        let listening = Arc::clone(&handler);
        let program = Program { handler, settings: Settings::default() };
        let mut slots = Slots::new(program, None, Readiness::default());
        let jobs: Vec<_> = (0..JOBS).map(|_| job()).collect();
        jobs.iter().for_each(|job| slots.start(job.clone()));
        drop(listening.0.acquire_many(JOBS).await.unwrap());
        let waker = Waker::from(Arc::new(SlowWaker));
        let tokens = jobs.iter().map(JobContext::token);
        let mut fired: Vec<_> =
            tokens.map(|token| Box::pin(token.cancelled_owned())).collect();
        for future in &mut fired {
            let first = future.as_mut().poll(&mut Context::from_waker(&waker));
            assert!(first.is_pending());
        }

        slots.cut_off();

        for _ in 0..JOBS {
            let (_, ended) = slots.next_ended().await;
            assert!(matches!(ended, Ended::CutOff), "the handler has failed");
        }
    }

    /// The slots of a worker with one slot whose handlers never end.
    fn one_slot(pool: Option<PoolMember>) -> Slots {
        let handler = Arc::new(|_: JobContext| pending::<Result<(), Failure>>());
        let settings = Settings { concurrency: NonZeroU32::MIN, ..Settings::default() };
        Slots::new(Program { handler, settings }, pool, Readiness::default())
    }

    /// R24: a handler that blocks its thread cannot be stopped. The worker must know its job,
    /// so that it does not give it back while the handler runs.
    #[tokio::test]
    async fn the_jobs_of_handlers_that_still_run_are_known() {
        let mut slots = one_slot(None);
        let job = job();
        slots.start(job.clone());

        let stuck = slots.take_stuck();

        assert_eq!(stuck.len(), 1, "the job is given back, and runs twice");
        assert_eq!(stuck[0].address(), job.address());
    }

    #[tokio::test]
    async fn a_waiting_job_starts_only_in_a_free_slot() {
        let mut slots = one_slot(None);
        slots.start(job());
        slots.start_later(job(), Duration::ZERO);

        assert!(!slots.start_waiting(), "two handlers run in one slot");
    }

    /// A slot that a waiting job uses is not granted for a claim, too.
    #[tokio::test]
    async fn a_waiting_job_uses_the_slot_that_it_was_granted() {
        let pool = SlotPool::members(1, Turns::Strict, [1].into_iter()).remove(0);
        let mut slots = one_slot(Some(pool));
        slots.start_later(job(), Duration::ZERO);
        let more = Demand { wanted: 1, is_served: true, ..Demand::default() };

        let granted = [slots.reserve(more), slots.reserve(more)];

        assert_eq!(granted, [0, 0], "the slot is granted twice");

        assert!(!slots.is_empty(), "the waiting job has started");
    }

    /// [`Progress::running`] counts the handlers that run.
    #[tokio::test]
    async fn a_handler_that_has_ended_does_not_count_as_running() {
        let handler = Arc::new(async |_: JobContext| Ok::<_, Failure>(()));
        let program = Program { handler, settings: Settings::default() };
        let progress = program.settings.observers.progress.clone();
        let mut slots = Slots::new(program, None, Readiness::default());
        slots.start(job());
        assert_eq!(progress.running(), 1, "it runs");

        slots.next_ended().await;

        assert_eq!(progress.running(), 0, "it has ended");
    }

    /// A handler that is ready for one job.
    struct ReadyForOne;

    impl Handler for ReadyForOne {
        async fn handle(&self, _: JobContext) -> Result<(), Failure> {
            Ok(())
        }

        fn ready_for(&self, _: usize, _: &mut Context<'_>) -> Result<usize, Failure> {
            Ok(1)
        }
    }

    /// A claim that has ended leaves the readiness that it did not use. Otherwise an idle
    /// worker would use up all of it.
    #[test]
    fn a_claim_that_found_nothing_leaves_the_handler_ready() {
        let program =
            Program { handler: Arc::new(ReadyForOne), settings: Settings::default() };
        let mut slots = Slots::new(program, None, Readiness::default());
        let one = NonZeroU32::MIN;
        assert_eq!(slots.make_ready(one), Some(one));
        assert_eq!(slots.make_ready(one), None, "the claim may return a job");

        slots.report_asked(0);

        assert_eq!(slots.make_ready(one), Some(one), "the claim has ended");
    }
}
