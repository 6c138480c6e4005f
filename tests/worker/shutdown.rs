//! Tests of the shutdown: a worker that ends leaves no unfinished work and no leased
//! job (R24).

use std::{
    future::pending,
    pin::Pin,
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::Duration,
};

use relq::{
    ClaimRequest, Delivery, Error, Settlement,
    environment::{Clock, Environment, OsRandomness, SystemClock, Timestamp},
    outcome::Settled,
    worker::{Cancellation, CancellationToken, Failure, JobContext, WorkerState},
};
use relq_conformance::overrides::{OverriddenQueue, Override, Right};
use tokio::sync::{Notify, Semaphore};

use crate::{
    blocked_runtime::BlockingHandlers,
    clocks::PartingClock,
    faulty::{Fault, Faulty},
    fixture::{
        Dropped, Fixture, LONG_LEASE, Running, SHORT_LEASE, eventually, worker_on,
    },
    leases::BeatenTime,
};

const LONG: Duration = Duration::from_secs(3600);

async fn never_ends(_: JobContext) -> Result<(), Failure> {
    pending().await
}

/// R24: after a request to stop, running handlers may finish, and no new handler
/// starts. Heartbeats keep their leases.
pub(crate) async fn running_handlers_get_their_grace_time(fixture: Fixture) {
    fixture.push_many(3).await;
    let is_over = CancellationToken::new();
    let over = is_over.clone();

    let time = BeatenTime::default();
    let worker = time.worker_on(fixture.queue.clone()).grace(LONG_LEASE * 100);
    let worker = Running::start(worker, move |_: JobContext| {
        let over = over.clone();
        async move {
            over.cancelled().await;
            Ok::<_, Failure>(())
        }
    });
    worker.until_running(2).await;
    worker.ask_to_stop();
    time.pass();
    is_over.cancel();
    let summary = worker.end().await.unwrap();

    assert_eq!(summary.done, 2);
    let stats = fixture.stats().await;
    assert_eq!((stats.finished, stats.ready, stats.leased), (2, 1, 0));
}

/// R24: a request to stop cancels no token. Running handlers may finish their work within
/// the grace time, so they must not be told to give it up.
pub(crate) async fn request_to_stop_cancels_no_token(fixture: Fixture) {
    fixture.push_many(2).await;
    let (gate, seen) = (Arc::new(Semaphore::new(0)), Arc::new(Mutex::new(Vec::new())));
    let (open, told) = (Arc::clone(&gate), Arc::clone(&seen));

    let worker = fixture.worker().grace(LONG).concurrency(2.try_into().unwrap());
    let worker = Running::start(worker, move |job: JobContext| {
        let (open, told) = (Arc::clone(&open), Arc::clone(&told));
        async move {
            open.acquire().await.unwrap().forget();
            told.lock().unwrap().push(job.cancellation());
            Ok::<_, Failure>(())
        }
    });
    worker.until_running(2).await;
    worker.ask_to_stop();
    eventually(|| worker.progress.state() == WorkerState::Stopping).await;
    gate.add_permits(1);
    // The second handler ends when the worker has settled a job after the request.
    worker.until(|summary| summary.done == 1).await;
    gate.add_permits(1);
    let summary = worker.end().await.unwrap();

    assert_eq!(summary.done, 2);
    assert_eq!(*seen.lock().unwrap(), [None::<Cancellation>; 2]);
}

/// R24: a job whose handler is cut off at the end of the grace time is ready at once,
/// and its attempt is not counted.
pub(crate) async fn handler_over_its_grace_time_is_given_back_uncounted(
    fixture: Fixture,
) {
    fixture.push("endless").await;

    let environment = PartingClock::stopped().environment();
    let worker = fixture.worker().grace(Duration::ZERO).environment(environment);
    let worker = Running::start(worker, never_ends);
    worker.until_running(1).await;
    let summary = worker.stop().await;

    assert_eq!((summary.given_back, summary.lost), (1, 0));
    assert_eq!(fixture.claim_one().await.unwrap().attempt(), 1);
}

/// R24: if a pending claim returns jobs after the request to stop, the worker gives
/// them back and does not run them.
pub(crate) async fn claim_in_flight_at_stop_is_given_back(fixture: Fixture) {
    fixture.push("running").await;
    let answer = Arc::new(Notify::new());
    let late = Arc::clone(&answer);
    let runs = Arc::new(AtomicUsize::new(0));
    let (gate, ran) = (Arc::new(Notify::new()), Arc::clone(&runs));
    let open = Arc::clone(&gate);

    let slow = Faulty::new(fixture.queue.clone())
        .on_claim(move |call, _| (call == 1).then(|| Fault::Late(Arc::clone(&late))));
    let worker = worker_on(Arc::new(slow)).grace(LONG);
    let worker = Running::start(worker, move |_: JobContext| {
        ran.fetch_add(1, SeqCst);
        let open = Arc::clone(&open);
        async move {
            open.notified().await;
            Ok::<_, Failure>(())
        }
    });
    eventually(|| runs.load(SeqCst) == 1).await;
    fixture.push("in flight").await;
    fixture.until(|stats| stats.leased == 2).await;
    worker.ask_to_stop();
    answer.notify_one();
    fixture.until(|stats| stats.ready == 1).await;
    gate.notify_one();
    let summary = worker.end().await.unwrap();

    assert_eq!((summary.done, summary.given_back, runs.load(SeqCst)), (1, 1, 1));
    assert_eq!(fixture.claim_one().await.unwrap().attempt(), 1);
}

/// R24: no handler starts after the request to stop, even if the request comes just
/// before the reply to a claim.
pub(crate) async fn request_just_before_an_answer_counts(fixture: Fixture) {
    fixture.push("too late").await;
    let stop = CancellationToken::new();
    let asked = stop.clone();
    let asks: Arc<dyn Fn() + Send + Sync> = Arc::new(move || asked.cancel());
    let runs = Arc::new(AtomicUsize::new(0));
    let ran = Arc::clone(&runs);

    let overtaken = Faulty::new(fixture.queue.clone())
        .on_claim(move |_, _| Some(Fault::Overtaken(Arc::clone(&asks))));
    let worker = worker_on(Arc::new(overtaken)).stop_on(stop.cancelled_owned());
    let worker = Running::start(worker, move |_: JobContext| {
        ran.fetch_add(1, SeqCst);
        async { Ok::<_, Failure>(()) }
    });
    let summary = worker.end().await.unwrap();

    assert_eq!((summary.given_back, runs.load(SeqCst)), (1, 0));
    assert_eq!(fixture.claim_one().await.unwrap().attempt(), 1);
}

/// A worker that waits for jobs in a claim still stops at once.
pub(crate) async fn idle_worker_stops_at_once(fixture: Fixture) {
    // The claim never returns, and the grace time is longer than the test waits.
    let waits = Faulty::new(fixture.queue.clone())
        .on_claim(|_, _| Some(Fault::Late(Arc::default())));
    let waits = Arc::new(waits);
    let worker = Running::start(worker_on(waits.clone()).grace(LONG), never_ends);
    eventually(|| waits.claims.calls() == 1).await;

    worker.stop().await;
}

/// A request for a hard stop ends the grace time at once. The worker still gives its
/// jobs back.
pub(crate) async fn second_request_stops_hard(fixture: Fixture) {
    fixture.push("endless").await;

    let environment = PartingClock::stopped().environment();
    let worker = fixture.worker().grace(LONG).environment(environment);
    let worker = Running::start(worker, never_ends);
    worker.until_running(1).await;
    worker.ask_to_stop();
    worker.halt();
    let summary = worker.end().await.unwrap();

    assert_eq!(summary.given_back, 1);
    assert_eq!(fixture.stats().await.ready, 1);
}

/// R24: a hard stop still reads the reply to a settlement that is under way, so that its
/// job does not count as uncertain.
pub(crate) async fn hard_stop_reads_the_reply_to_a_settlement(fixture: Fixture) {
    fixture.push("job").await;
    let answer = Arc::new(Notify::new());
    let late = Arc::clone(&answer);
    let slow = Faulty::new(fixture.queue.clone())
        .on_settle(move |_, _| Some(Fault::Late(Arc::clone(&late))));
    let slow = Arc::new(slow);

    let environment = PartingClock::stopped().environment();
    let worker = worker_on(slow.clone()).environment(environment);
    let worker = Running::start(worker, async |_: JobContext| Ok::<_, Failure>(()));
    eventually(|| slow.settlements.answers() == 1).await;
    worker.halt();
    eventually(|| worker.progress.state() == WorkerState::Stopping).await;
    answer.notify_one();
    let summary = worker.end().await.unwrap();

    assert_eq!((summary.done, summary.uncertain), (1, 0));
}

/// The waits, the drops and the settlements of a queue, in their order. A claim that finds
/// no job waits for ever.
#[derive(Clone, Default)]
struct Events(Arc<Mutex<Vec<&'static str>>>);

impl Events {
    fn note(&self, event: &'static str) {
        self.0.lock().unwrap().push(event);
    }
}

struct WaitingClaim(Events);

impl Drop for WaitingClaim {
    fn drop(&mut self) {
        self.0.note("the claim is dropped");
    }
}

#[async_trait::async_trait]
impl Override for Events {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let jobs = right.claim(&ask.clone().wait(Duration::ZERO)).await?;
        if !jobs.is_empty() {
            return Ok(jobs);
        }
        self.note("the claim waits");
        let _waiting = WaitingClaim(self.clone());
        pending().await
    }

    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        self.note("a job is given back");
        right.settle(done).await
    }
}

/// R24: a claim that waits for a job is dropped before the worker gives back its own jobs.
/// Otherwise it would take them.
pub(crate) async fn waiting_claim_takes_no_job_that_is_given_back(fixture: Fixture) {
    fixture.push("endless").await;
    let (events, environment) = (Events::default(), Environment::default());
    let right = Right { queue: fixture.queue.clone(), environment };
    let queue = OverriddenQueue::new(right, Arc::new(events.clone()));

    let environment = PartingClock::stopped().environment();
    let worker = worker_on(Arc::new(queue)).grace(Duration::ZERO);
    let worker = Running::start(worker.environment(environment), never_ends);
    eventually(|| !events.0.lock().unwrap().is_empty()).await;
    let summary = worker.stop().await;

    let expected = ["the claim waits", "the claim is dropped", "a job is given back"];
    assert_eq!(*events.0.lock().unwrap(), expected);
    assert_eq!(summary.given_back, 1);
}

/// A clock that counts its sleeps. To drop one takes a while.
#[derive(Debug, Clone, Default)]
struct SlowlyDropped(Arc<AtomicUsize>);

struct Sleeping(Arc<AtomicUsize>);

impl Drop for Sleeping {
    fn drop(&mut self) {
        thread::sleep(Duration::from_millis(50));
        self.0.fetch_sub(1, SeqCst);
    }
}

impl Clock for SlowlyDropped {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn elapsed(&self) -> Duration {
        SystemClock.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.0.fetch_add(1, SeqCst);
        let sleeping = Sleeping(Arc::clone(&self.0));
        Box::pin(async move {
            SystemClock.sleep(duration).await;
            drop(sleeping);
        })
    }
}

/// R24: when the run of a worker returns, its reaper and its heartbeats have ended too, so
/// that the application may close the store.
pub(crate) async fn nothing_of_a_worker_is_left_when_it_has_ended(fixture: Fixture) {
    fixture.push("job").await;
    let clock = SlowlyDropped::default();
    let environment = Environment::new(Arc::new(clock.clone()), Arc::new(OsRandomness));

    let worker = fixture.worker().environment(environment);
    let worker = Running::start(worker, async |_: JobContext| Ok::<_, Failure>(()));
    worker.until(|summary| summary.done == 1).await;
    worker.stop().await;

    assert_eq!(clock.0.load(SeqCst), 0, "sleeps of the worker that are left");
}

/// R6: while a handler runs that cannot be stopped, its job is not given to another
/// worker.
pub(crate) async fn handler_that_blocks_keeps_its_lease(fixture: Fixture) {
    fixture.push("stubborn").await;
    let handlers = BlockingHandlers::new();

    let worker = fixture.worker().grace(Duration::ZERO);
    let worker = Running::start(worker, handlers.handler());
    let progress = worker.progress.clone();
    eventually(|| handlers.begun() == 1).await;
    let summary = worker.stop().await;
    let stats = fixture.stats().await;

    assert_eq!((summary.lost, summary.given_back), (1, 0));
    assert_eq!((stats.leased, stats.ready), (1, 0));
    assert_eq!(progress.running(), 1, "the handler runs on");
    drop(handlers);
    eventually(|| progress.running() == 0).await;
}

/// R22: when the worker's future is dropped, its heartbeats end too, so its jobs are
/// recovered.
pub(crate) async fn dropped_worker_drops_handlers_and_its_jobs_come_back(
    fixture: Fixture,
) {
    fixture.push("orphan").await;
    let is_dropped = Arc::new(AtomicBool::new(false));
    let has_begun = Arc::new(AtomicBool::new(false));
    let (flag, begins) = (Arc::clone(&is_dropped), Arc::clone(&has_begun));

    let worker =
        Running::start(fixture.worker().lease(SHORT_LEASE), move |_: JobContext| {
            let guard = Dropped(Arc::clone(&flag));
            begins.store(true, SeqCst);
            async move {
                pending::<()>().await;
                drop(guard);
                Ok::<_, Failure>(())
            }
        });
    eventually(|| has_begun.load(SeqCst)).await;
    worker.drop_future().await;

    eventually(|| is_dropped.load(SeqCst)).await;
    assert!(fixture.recover_and_claim_one().await.attempt() >= 2);
}
