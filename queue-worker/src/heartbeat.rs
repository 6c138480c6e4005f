//! Heartbeats run on their own thread and their own connection, so that a handler that
//! blocks every thread of the runtime keeps its job.
//!
//! The thread also watches the leases' ends by the worker's own steady clock: when no
//! heartbeat succeeds until a lease may have expired, the job is treated as lost,
//! although the store did not report the loss.
//!
//! After a suspend of the machine, or a step of its wall clock, running leases may seem
//! expired. Then the thread asks the store at once. Leases that the store does not
//! confirm in time are lost.
//!
//! The thread also reports to the store that the worker runs (`heartbeat/reports.rs`).
//!
//! The queues of a worker share the thread. Each has its own heartbeats, so that a store
//! that is down delays no heartbeat of another.

mod caller;
mod reports;

use std::{
    future::{Future, pending, poll_fn},
    io,
    pin::Pin,
    sync::Arc,
    task::Poll,
    thread,
    time::Duration,
};

use relq_core::{
    Error, ReliableQueue, WorkerId, error::Operation, operator::WorkerReport,
    outcome::Extended,
};
use tokio::{runtime, sync::oneshot, task::JoinSet};
use tokio_util::sync::{CancellationToken, DropGuard};
use tracing::{Instrument as _, Span};

use crate::{
    JobContext, WorkerError,
    backoff::{Backoff, Sleep},
    context::LeaseEnd,
    held::{Beat, Held},
    lease_clock::LeaseClock,
    observers::Observers,
    settings::Settings,
};
use caller::{Answer, Caller};
use reports::Reports;

/// The longest sleep of the heartbeat thread while the worker holds a job. The thread
/// notices a suspend of the machine after this time at the latest.
const LONGEST_NAP: Duration = Duration::from_secs(1);

/// If a queue has several stores and one of them did not answer a heartbeat, the worker
/// sends the next one after at most this time.
const UNKNOWN_PAUSE: Duration = Duration::from_millis(500);

/// How long the worker waits, after a suspend, for the store to confirm a lease.
const CONFIRMATION: Duration = Duration::from_secs(1);

/// The heartbeats of one queue. Dropping this value ends them; the thread ends with those
/// of the last queue.
pub(crate) struct Heartbeat {
    stop: Option<DropGuard>,
    ended: oneshot::Receiver<Error>,
    reports_end: CancellationToken,
}

impl Heartbeat {
    /// Starts the thread, and on it the heartbeats of each queue. Returns them in the
    /// same order.
    pub(crate) async fn start(queues: Vec<Beats>) -> io::Result<Vec<Self>> {
        let (ready, started) = oneshot::channel();
        let (heartbeats, running) = queues.into_iter().map(Self::of).unzip();
        Self::spawn(running, ready)?;
        started.await.unwrap_or_else(|gone| Err(io::Error::other(gone)))?;
        Ok(heartbeats)
    }

    /// The heartbeats of one queue, and the future that sends them.
    fn of(beats: Beats) -> (Self, Beating) {
        let stopped = CancellationToken::new();
        let stop = Some(stopped.clone().drop_guard());
        let (alive, ended) = oneshot::channel();
        let (span, reports_end) = (beats.span.clone(), beats.reports.ended());
        let beating = async move {
            let ended = stopped.run_until_cancelled(beats.run()).await;
            if let Some(error) = ended {
                // Ignore a failed send: the worker has ended already.
                drop(alive.send(error));
            }
        };
        (Self { stop, ended, reports_end }, Box::pin(beating.instrument(span)))
    }

    fn spawn(
        running: Vec<Beating>,
        ready: oneshot::Sender<io::Result<()>>,
    ) -> io::Result<()> {
        thread::Builder::new().name("relq-heartbeat".into()).spawn(move || {
            // Build and drop the runtime on this thread. The thread of the caller is
            // inside another runtime, where a runtime must not be dropped.
            match runtime::Builder::new_current_thread().enable_all().build() {
                Ok(runtime) => {
                    drop(ready.send(Ok(())));
                    runtime.block_on(all_end(running));
                    // Do not wait for a blocking call that the backend left on a
                    // thread.
                    runtime.shutdown_background();
                }
                Err(error) => drop(ready.send(Err(error))),
            }
        })?;
        Ok(())
    }

    /// Completes when the heartbeats have ended, because they gave up or the thread
    /// panicked.
    pub(crate) async fn died(&mut self) -> WorkerError {
        (&mut self.ended)
            .await
            .map_or(WorkerError::Died("heartbeat"), WorkerError::Store)
    }

    /// Whether [`died`](Self::died) has already returned an error.
    pub(crate) fn has_died(&self) -> bool {
        self.ended.is_terminated()
    }

    /// A token whose cancellation ends the reports that the worker runs, while the
    /// heartbeats go on.
    pub(crate) fn reports_end(&self) -> CancellationToken {
        self.reports_end.clone()
    }

    /// Stops the heartbeats and waits until they have ended.
    pub(crate) async fn stop(mut self) {
        self.stop = None;
        if !self.has_died() {
            // An error of the heartbeats does not matter here: the worker is already ending
            // for another reason.
            let _ended = (&mut self.ended).await;
        }
    }
}

/// The future that sends the heartbeats of one queue.
type Beating = Pin<Box<dyn Future<Output = ()> + Send>>;

/// Completes when all the heartbeats have ended.
async fn all_end(mut running: Vec<Beating>) {
    poll_fn(|context| {
        running.retain_mut(|beating| beating.as_mut().poll(context).is_pending());
        if running.is_empty() { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// The state of the loop that runs on the heartbeat thread for one queue.
pub(crate) struct Beats {
    caller: Arc<Caller>,
    held: Arc<Held>,
    give_up_after: Duration,
    clock: LeaseClock,
    reports: Reports,
    calls: JoinSet<Answer>,
    backoff: Backoff,
    observers: Observers,
    /// The span in which the queue was started.
    span: Span,
    /// How long the machine was suspended, as far as the thread has noticed.
    missed: Duration,
    /// After a suspend, the time until which no lease counts as expired, so that the
    /// store can confirm it.
    confirmed_by: Duration,
}

impl Beats {
    pub(crate) fn new(
        queue: Arc<dyn ReliableQueue>,
        worker: WorkerId,
        held: Arc<Held>,
        settings: &Settings,
    ) -> Self {
        let clock = settings.lease_clock.clone();
        let caller = Caller::new(queue, worker.clone(), clock.clone());
        let caller = Arc::new(caller);
        let report = WorkerReport::new(worker, settings.concurrency);
        Self {
            reports: Reports::new(Arc::clone(&caller), report, clock.elapsed()),
            caller,
            held,
            backoff: Backoff::new("the heartbeat", settings.environment.clone()),
            give_up_after: settings.give_up_after,
            observers: settings.observers.clone(),
            calls: JoinSet::new(),
            span: Span::current(),
            missed: clock.missed(),
            confirmed_by: Duration::ZERO,
            clock,
        }
    }

    /// Sends heartbeats until an error has lasted too long. Returns that error.
    async fn run(mut self) -> Error {
        self.open();
        loop {
            // `now` is read before the check for a suspend. So the check notices every
            // suspend that `now` includes, and the store is asked before a lease ends.
            let now = self.now();
            self.notice_suspend();
            self.expire(now);
            self.held.due(self.now()).into_iter().for_each(|beat| self.send(beat));
            self.reports.send_if_due(self.now());
            let next_event = self.sleep_until(self.next_event());
            tokio::select! {
                () = next_event => {}
                () = self.held.changed() => {}
                Some(answer) = self.reports.answered() => self.reports.plan_next(&answer),
                Some(answer) = self.calls.join_next() => match answer {
                    Ok(answer) => {
                        if let Err(error) = self.answered(answer) {
                            return error;
                        }
                    }
                    Err(panic) => tracing::error!(%panic, "a heartbeat panicked"),
                },
            }
        }
    }

    fn notice_suspend(&mut self) {
        let missed = self.clock.missed();
        if missed > self.missed {
            let slept = missed.saturating_sub(self.missed);
            tracing::info!(
                ?slept,
                "the machine was suspended, or its clock set forward"
            );
            self.missed = missed;
            let now = self.now();
            self.held.beat_all_by(now);
            self.reports.hurry(now);
            self.confirmed_by = now.saturating_add(CONFIRMATION);
        }
    }

    fn expire(&self, now: Duration) {
        if now < self.confirmed_by {
            return;
        }
        self.held.expire(now).iter().for_each(|job| {
            let id = job.id();
            tracing::warn!(%id, "no heartbeat succeeded: the lease may have expired");
            self.observers.lease_lost(job);
        });
    }

    /// When the thread must wake next: for a report, a heartbeat, the end of a lease, or a
    /// check for a suspend. `None` if it has nothing to wait for.
    fn next_event(&self) -> Option<Duration> {
        self.next_of_leases().into_iter().chain(self.reports.next()).min()
    }

    fn next_of_leases(&self) -> Option<Duration> {
        let now = self.now();
        let next_end = self.held.next_end().map(|end| end.max(self.confirmed_by));
        let next_nap = now.saturating_add(LONGEST_NAP);
        let next_beat = self.held.next_beat()?.min(next_nap);
        Some(next_end.map_or(next_beat, |end| end.min(next_beat)))
    }

    /// Opens the connection now, so that the first heartbeat does not wait for it.
    fn open(&mut self) {
        let caller = Arc::clone(&self.caller);
        self.spawn(async move {
            let result = caller.open_another().await.map(|_| Vec::new());
            let sent = caller.now();
            let beat = Beat { lease: Duration::ZERO, jobs: Vec::new() };
            Answer { operation: Operation::Connect, beat, sent, result }
        });
    }

    fn send(&mut self, beat: Beat) {
        let page = self.caller.capabilities().limits.max_jobs_per_call.get() as usize;
        let Beat { lease, mut jobs } = beat;
        loop {
            let rest = jobs.split_off(jobs.len().min(page));
            let caller = Arc::clone(&self.caller);
            self.spawn(async move { caller.extend(Beat { lease, jobs }).await });
            if rest.is_empty() {
                return;
            }
            jobs = rest;
        }
    }

    /// Starts a call. The box gives both kinds of calls one type, so that the code of a
    /// task is compiled once.
    fn spawn(&mut self, call: impl Future<Output = Answer> + Send + 'static) {
        let call: Pin<Box<dyn Future<Output = Answer> + Send>> = Box::pin(call);
        self.calls.spawn(call.in_current_span());
    }

    fn answered(&mut self, answer: Answer) -> Result<(), Error> {
        let Answer { operation, beat: Beat { lease, jobs }, sent, result } = answer;
        if let Err(error) = &result {
            self.observers.call_failed(operation, error);
        }
        match result {
            Ok(extended) => {
                if extended.contains(&Extended::Unknown) {
                    self.backoff.works_in_part();
                    let soon = self.now().saturating_add(UNKNOWN_PAUSE);
                    self.held.beat_by(lease, soon);
                } else {
                    self.backoff.succeeded();
                }
                let until = sent.saturating_add(lease);
                jobs.iter()
                    .zip(extended)
                    .for_each(|(job, e)| self.extended(job, e, until));
            }
            Err(error) if self.backoff.is_hopeless(&error, self.give_up_after) => {
                return Err(error);
            }
            Err(error) => {
                let pause = self.backoff.failed(&error);
                self.held.beat_by(lease, self.now().saturating_add(pause));
            }
        }
        Ok(())
    }

    fn extended(&self, job: &JobContext, extended: Extended, until: Duration) {
        let id = job.id();
        match extended {
            Extended::Until(_) => job.extend_until(until),
            Extended::Unknown => {}
            Extended::Cancelled => {
                if self.held.end(job, LeaseEnd::Cancelled) {
                    tracing::info!(%id, "the job was cancelled");
                }
            }
            Extended::LeaseLost => {
                // A call that failed may have settled the job, and so ended the lease. The
                // outcome of the job then says that this is not certain.
                if self.held.end(job, LeaseEnd::Lost) && !job.is_perhaps_settled() {
                    tracing::warn!(%id, "the lease was lost");
                    self.observers.lease_lost(job);
                }
            }
        }
    }

    fn sleep_until(&self, at: Option<Duration>) -> Sleep {
        match at {
            Some(at) => self.clock.sleep(at.saturating_sub(self.now())),
            None => Box::pin(pending()),
        }
    }

    fn now(&self) -> Duration {
        self.clock.elapsed()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use relq_core::{
        ClaimRequest, Delivery, JobId, NewJob, QueueName, Receipt,
        environment::{Clock, Environment, OsRandomness, Timestamp},
        error::ErrorContext,
    };
    use relq_memory::{MemoryQueue, MemoryStore};

    use super::*;

    const LEASE: Duration = Duration::from_secs(3600);

    /// The time limit of a test. A test that succeeds does not reach it.
    const LIMIT: Duration = Duration::from_secs(30);

    fn answer(result: Result<Vec<Extended>, Error>) -> Answer {
        let beat = Beat { lease: LEASE, jobs: Vec::new() };
        Answer { operation: Operation::Extend, beat, sent: Duration::ZERO, result }
    }

    fn denied() -> Answer {
        let at = ErrorContext { backend: "test", operation: Operation::Extend };
        answer(Err(Error::Denied { at, source: "one store".into() }))
    }

    /// R21: while one store of a queue denies the heartbeats, or does not answer, those for
    /// the other stores succeed. The worker goes on, and asks again soon, but not at once.
    #[test]
    fn a_heartbeat_that_works_in_part_ends_no_worker() {
        let name = QueueName::new("q").unwrap();
        let queue = MemoryStore::default().open(name, Environment::default());
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        let job = JobContext::new(Delivery::new(receipt, "", LEASE));
        let held = Arc::new(Held::new(None, Duration::ZERO));
        let limit = Duration::from_millis(1);
        let settings = Settings { give_up_after: limit, ..Settings::default() };
        let worker = WorkerId::new("worker").unwrap();
        let (queue, kept) = (Arc::new(queue), Arc::clone(&held));
        let mut beats = Beats::new(queue, worker, kept, &settings);

        beats.answered(denied()).unwrap();
        thread::sleep(limit);
        held.add(&[job], beats.now());
        let soonest = beats.now() + UNKNOWN_PAUSE;
        beats.answered(answer(Ok(vec![Extended::Unknown]))).unwrap();
        let latest = beats.now() + UNKNOWN_PAUSE;

        let next = held.next_beat().unwrap();
        assert!((soonest..=latest).contains(&next), "{next:?}, not {soonest:?}");
        beats.answered(denied()).expect("the worker has given up");
    }

    /// The clocks of a machine that runs for no time, and is suspended when a test says so.
    #[derive(Debug, Clone, Default)]
    struct Suspended(Arc<Mutex<Duration>>);

    impl Suspended {
        fn settings(&self) -> Settings {
            let clock = Arc::new(self.clone());
            let environment = Environment::new(clock, Arc::new(OsRandomness));
            let lease_clock = LeaseClock::new(environment.clone());
            Settings { environment, lease_clock, ..Settings::default() }
        }
    }

    impl Clock for Suspended {
        fn now(&self) -> Timestamp {
            Timestamp::from_unix_ms(0).plus(*self.0.lock().unwrap())
        }

        fn elapsed(&self) -> Duration {
            Duration::ZERO
        }

        fn sleep(&self, _: Duration) -> Sleep {
            Box::pin(pending())
        }
    }

    fn beats(settings: &Settings) -> (Beats, Arc<Held>) {
        let name = QueueName::new("q").unwrap();
        beats_of(MemoryStore::default().open(name, Environment::default()), settings)
    }

    fn beats_of(queue: MemoryQueue, settings: &Settings) -> (Beats, Arc<Held>) {
        let held = Arc::new(Held::new(None, Duration::ZERO));
        let worker = WorkerId::new("worker").unwrap();
        (Beats::new(Arc::new(queue), worker, Arc::clone(&held), settings), held)
    }

    fn held_until(until: Duration) -> JobContext {
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        JobContext::held_until(Delivery::new(receipt, "", LEASE), until)
    }

    /// R21: the worker gives up when the store denies its heartbeats for the stated time
    /// without a break. A heartbeat that works is such a break.
    #[test]
    fn a_heartbeat_that_works_starts_the_time_to_give_up_again() {
        let limit = Duration::from_millis(1);
        let settings = Settings { give_up_after: limit, ..Settings::default() };
        let (mut beats, _held) = beats(&settings);
        beats.answered(denied()).unwrap();
        thread::sleep(limit);

        beats.answered(answer(Ok(Vec::new()))).unwrap();

        assert!(!beats.backoff.is_failing(), "the heartbeats work again");
        beats.answered(denied()).expect("the worker has given up");
    }

    /// R6: a heartbeat extends the lease from when it was sent.
    #[test]
    fn a_heartbeat_extends_the_lease_from_its_sending() {
        let (mut beats, _held) = beats(&Settings::default());
        let (job, sent) = (held_until(LEASE), Duration::from_secs(60));
        let beat = Beat { lease: LEASE, jobs: vec![job.clone()] };
        let result = Ok(vec![Extended::Until(Timestamp::from_unix_ms(0))]);

        let operation = Operation::Extend;
        beats.answered(Answer { operation, beat, sent, result }).unwrap();

        assert_eq!(job.until(), sent + LEASE, "the end of the lease");
    }

    /// R6: a lease ends by the clock of the worker, although no heartbeat reports it. After a
    /// suspend the store has a moment to confirm the lease.
    #[test]
    fn a_lease_that_no_heartbeat_extends_ends() {
        let (mut beats, held) = beats(&Settings::default());
        let second = Duration::from_secs(1);
        beats.confirmed_by = second * 2;
        let job = held_until(second);
        held.add(std::slice::from_ref(&job), Duration::ZERO);

        beats.expire(second);
        assert_eq!(job.lease_end(), None, "the store may confirm it");
        beats.expire(second * 2);

        assert_eq!(job.lease_end(), Some(LeaseEnd::Lost), "the lease is over");
    }

    /// R18: after a suspend the worker asks the store at once about its leases, and reports
    /// that it runs (R33). Nothing else tells whether they have expired.
    #[tokio::test]
    async fn a_suspend_makes_heartbeats_and_reports_due_at_once() {
        let machine = Suspended::default();
        let (mut beats, held) = beats(&machine.settings());
        held.add(&[held_until(LEASE)], Duration::ZERO);
        beats.reports.plan_next(&Ok(()));
        let slept = Duration::from_secs(10);
        *machine.0.lock().unwrap() = slept;

        beats.notice_suspend();

        assert_eq!(held.next_beat(), Some(slept), "the next heartbeat");
        assert_eq!(beats.reports.next(), Some(slept), "the next report");
    }

    /// R24: a worker that has ended sends nothing more.
    #[tokio::test]
    async fn a_heartbeat_that_is_stopped_has_ended() {
        let (beats, held) = beats(&Settings::default());
        let mut heartbeats = Heartbeat::start(vec![beats]).await.unwrap();
        let heartbeat = heartbeats.remove(0);
        assert!(!heartbeat.has_died(), "it runs");

        heartbeat.stop().await;

        assert_eq!(Arc::strong_count(&held), 1, "the heartbeats still use the leases");
    }

    /// R18: after a suspend, or a step of the wall clock, a running lease may seem expired. The
    /// job is not lost, because the store confirms the lease.
    #[tokio::test]
    async fn a_lease_that_the_store_confirms_after_a_suspend_is_kept() {
        let name = QueueName::new("q").unwrap();
        let queue = MemoryStore::default().open(name, Environment::default());
        queue.push(&[NewJob::new("job")], None).await.unwrap();
        let ask = ClaimRequest::new(WorkerId::new("worker").unwrap(), LEASE);
        let delivery = queue.claim(&ask).await.unwrap().remove(0);
        let job = JobContext::held_until(delivery, LEASE);
        let machine = Suspended::default();
        let (beats, held) = beats_of(queue, &machine.settings());
        held.add(std::slice::from_ref(&job), Duration::ZERO);
        *machine.0.lock().unwrap() = LEASE * 2;

        let told = async {
            while job.until() == LEASE && job.lease_end().is_none() {
                tokio::task::yield_now().await;
            }
        };
        tokio::select! {
            error = beats.run() => panic!("the heartbeats end: {error}"),
            () = told => {}
            () = tokio::time::sleep(LIMIT) => panic!("the store confirms nothing"),
        }

        assert_eq!((job.lease_end(), job.until()), (None, LEASE * 3), "it is lost");
    }
}
