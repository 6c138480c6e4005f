//! Tests of a worker whose store fails: the work is delayed, and no job is lost.

use std::{
    num::NonZeroU32,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use relq::{
    Error,
    environment::{Clock, Environment, OsRandomness, Timestamp},
    error::{ErrorContext, Operation},
    outcome::Recovered,
    worker::{Failure, JobContext, WorkerError, WorkerState},
};
use relq_conformance::overrides::{OverriddenQueue, Override, Right};

use crate::{
    clocks::PartingClock,
    faulty::{Fault, Faulty},
    fixture::{
        Fixture, LONG_LEASE, Running, SHORT_LEASE, StoreLocation, eventually, worker_on,
    },
};

async fn succeeds(_: JobContext) -> Result<(), Failure> {
    Ok(())
}

/// R1: the worker repeats a settlement until the store accepts it, and does not drop it
/// (sidekiq#4138).
pub(crate) async fn settlement_that_failed_is_made_again(fixture: Fixture) {
    fixture.push_many(20).await;

    let flaky = Faulty::new(fixture.queue.clone())
        .on_settle(|call, _| (call < 3).then_some(Fault::Unavailable));
    let worker = Running::start(worker_on(Arc::new(flaky)), succeeds);
    fixture.until(|stats| stats.finished == 20).await;

    let summary = worker.stop().await;
    assert_eq!((summary.done, summary.lost), (20, 0));
}

/// A worker claims no more jobs while the store refuses its settlements.
pub(crate) async fn store_that_takes_no_settlement_gets_no_claims(fixture: Fixture) {
    fixture.push_many(100).await;
    let is_away = Arc::new(AtomicBool::new(true));
    let away = Arc::clone(&is_away);

    let flaky = Arc::new(
        Faulty::new(fixture.queue.clone())
            .on_settle(move |_, _| away.load(SeqCst).then_some(Fault::Unavailable)),
    );
    let worker = worker_on(flaky.clone()).concurrency(4.try_into().unwrap());
    let worker = Running::start(worker, succeeds);
    eventually(|| flaky.settlements.calls() >= 5).await;
    let leased = fixture.stats().await.leased;
    is_away.store(false, SeqCst);
    fixture.until(|stats| stats.finished == 100).await;

    // One claim may already be pending when the first settlement fails.
    assert!(leased <= 8, "{leased}");
    assert_eq!(worker.stop().await.done, 100);
}

/// R8: if the reply to a settlement is lost and the settlement is repeated, no job runs
/// twice.
pub(crate) async fn settlement_whose_answer_was_lost_runs_nothing_twice(
    fixture: Fixture,
) {
    fixture.push_many(20).await;
    let runs = Arc::new(AtomicUsize::new(0));
    let ran = Arc::clone(&runs);

    let flaky = Faulty::new(fixture.queue.clone())
        .on_settle(|call, _| (call < 3).then_some(Fault::AnswerLost));
    let worker = Running::start(worker_on(Arc::new(flaky)), move |_: JobContext| {
        ran.fetch_add(1, SeqCst);
        async { Ok::<_, Failure>(()) }
    });
    fixture.until(|stats| stats.finished == 20).await;

    let summary = worker.stop().await;
    assert_eq!((summary.done + summary.uncertain, runs.load(SeqCst)), (20, 20));
}

/// R7: when the store refuses a call with several settlements, the worker sends them
/// one by one, so that one bad settlement does not make the others fail.
pub(crate) async fn refused_settlement_spoils_no_other(fixture: Fixture) {
    fixture.push_many(20).await;

    let picky = Faulty::new(fixture.queue.clone())
        .on_settle(|_, jobs| (jobs > 1).then_some(Fault::Refused));
    let worker = Running::start(worker_on(Arc::new(picky)), succeeds);
    fixture.until(|stats| stats.finished == 20).await;

    assert_eq!(worker.stop().await.done, 20);
}

/// R1: a worker gives up a settlement that the store keeps refusing, and the job is
/// delivered again.
pub(crate) async fn lasting_refusal_loses_no_job(fixture: Fixture) {
    fixture.push("cursed").await;

    let refusing = Faulty::new(fixture.queue.clone())
        .on_settle(|call, _| (call == 0).then_some(Fault::Refused));
    let worker =
        Running::start(worker_on(Arc::new(refusing)).lease(SHORT_LEASE), succeeds);
    fixture.until(|stats| stats.finished == 1).await;

    let summary = worker.stop().await;
    // A machine that stands still also ends the short leases of later attempts.
    assert!(summary.lost >= 1);
    assert_eq!(summary.done, 1);
}

/// R21: if the first claim fails with an error that a retry cannot repair, the worker
/// ends at once with that error.
pub(crate) async fn hopeless_first_claim_ends_the_worker(fixture: Fixture) {
    let locked =
        Faulty::new(fixture.queue.clone()).on_claim(|_, _| Some(Fault::Denied));
    let worker = Running::start(worker_on(Arc::new(locked)), succeeds);

    let error = worker.end().await.unwrap_err();
    assert!(matches!(error, WorkerError::Claim(_)), "{error}");
}

/// A settlement that the store always refuses does not delay other settlements.
pub(crate) async fn disposition_that_is_never_taken_spoils_no_other(fixture: Fixture) {
    fixture.push_many(4).await;

    let partial = Faulty::new(fixture.queue.clone()).without_retries();
    let worker = worker_on(Arc::new(partial)).lease(Duration::from_secs(60));
    let worker =
        Running::start(worker, async |job: JobContext| match job.payload().as_ref() {
            b"0" | b"1" => Err(Failure::retry("again")),
            _ => Ok(()),
        });
    fixture.until(|stats| (stats.finished, stats.leased) == (2, 2)).await;
    worker.until(|summary| summary.done == 2).await;
    worker.halt();
    let summary = worker.end().await.unwrap();

    assert_eq!((summary.done, summary.lost), (2, 2));
}

/// When the worker's reaper task panics, the worker ends with an error that says so,
/// and gives back its jobs.
pub(crate) async fn worker_whose_reaper_dies_ends_and_gives_back(fixture: Fixture) {
    fixture.push("endless").await;
    let (clock, has_begun) =
        (PartingClock::default(), Arc::new(AtomicBool::new(false)));
    let (stops, begins) = (clock.clone(), Arc::clone(&has_begun));

    let broken = Faulty::new(fixture.queue.clone()).on_recover(move |_, _| {
        has_begun.load(SeqCst).then(|| {
            // No time limit of the shutdown passes before the job is given back.
            stops.stop();
            Fault::Panic
        })
    });
    let worker = worker_on(Arc::new(broken)).environment(clock.environment());
    let worker = Running::start(worker, move |_: JobContext| {
        begins.store(true, SeqCst);
        std::future::pending::<Result<(), Failure>>()
    });

    let error = worker.end().await.unwrap_err();
    assert_eq!(error.to_string(), "the reaper has died");
    let stats = fixture.stats().await;
    assert_eq!((stats.ready, stats.leased), (1, 0));
}

/// A clock that stops, and then panics, when the heartbeat thread uses it while the worker
/// holds a job.
#[derive(Debug)]
struct BreaksTheHeartbeat {
    right: PartingClock,
    is_held: Arc<AtomicBool>,
}

impl Clock for BreaksTheHeartbeat {
    fn now(&self) -> Timestamp {
        self.right.now()
    }

    fn elapsed(&self) -> Duration {
        let is_heartbeat = thread::current().name() == Some("relq-heartbeat");
        if is_heartbeat && self.is_held.load(SeqCst) {
            self.right.stop();
            panic!("as the test wants it");
        }
        self.right.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.right.sleep(duration)
    }
}

/// When the worker's heartbeat thread panics, the worker ends with an error that says
/// so, before its leases expire.
pub(crate) async fn worker_whose_heartbeat_dies_ends_and_gives_back(fixture: Fixture) {
    fixture.push("endless").await;
    let is_held = Arc::new(AtomicBool::new(false));
    let holds = Arc::clone(&is_held);
    let right = PartingClock::default();
    let clock = Arc::new(BreaksTheHeartbeat { right, is_held });

    let environment = Environment::new(clock, Arc::new(OsRandomness));
    let worker = fixture.worker().environment(environment);
    let worker = Running::start(worker, move |_: JobContext| {
        holds.store(true, SeqCst);
        std::future::pending::<Result<(), Failure>>()
    });

    let error = worker.end().await.unwrap_err();
    assert_eq!(error.to_string(), "the heartbeat has died");
    let stats = fixture.stats().await;
    assert_eq!((stats.ready, stats.leased), (1, 0));
}

/// R21: if claims fail after the first successful one, the worker does not end but
/// waits until an operator has repaired the store.
pub(crate) async fn later_trouble_with_claims_passes(fixture: Fixture) {
    fixture.push("before").await;

    let locked = Faulty::new(fixture.queue.clone()).on_claim(|call, _| match call {
        1 | 2 => Some(Fault::Denied),
        3 | 4 => Some(Fault::Unavailable),
        _ => None,
    });
    let worker = Running::start(worker_on(Arc::new(locked)), succeeds);
    fixture.until(|stats| stats.finished == 1).await;
    fixture.push("after").await;
    fixture.until(|stats| stats.finished == 2).await;

    assert_eq!(worker.stop().await.done, 2);
}

/// R18, R21: the machine's clock is set forward during a short trouble with claims. The
/// trouble has not lasted longer for that, so the worker does not give up.
pub(crate) async fn set_clock_ends_no_worker(fixture: Fixture) {
    fixture.push("before").await;
    let clock = PartingClock::default();
    let moved = clock.clone();

    let locked = Faulty::new(fixture.queue.clone()).on_claim(move |call, _| {
        if call == 2 {
            moved.step_wall(LONG_LEASE * 2);
        }
        matches!(call, 1 | 2).then_some(Fault::Denied)
    });
    let worker = worker_on(Arc::new(locked)).give_up_after(LONG_LEASE);
    let worker = Running::start(worker.environment(clock.environment()), succeeds);
    fixture.until(|stats| stats.finished == 1).await;
    fixture.push("after").await;
    fixture.until(|stats| stats.finished == 2).await;

    assert_eq!(worker.stop().await.done, 2);
}

/// How long the workers in these tests wait for a person to repair the store, before
/// they end.
const GIVE_UP: Duration = Duration::from_millis(400);

/// R21: if claims keep failing with an error that only a person can repair, the worker
/// ends with this error after `GIVE_UP`.
pub(crate) async fn lasting_refusal_of_claims_ends_the_worker(fixture: Fixture) {
    let locked = Faulty::new(fixture.queue.clone()).on_claim(|call, _| match call {
        0 => None,
        1 | 2 => Some(Fault::Unavailable),
        _ => Some(Fault::Denied),
    });
    let start = Instant::now();
    // The first claim waits for a third of a lease.
    let worker = worker_on(Arc::new(locked)).lease(SHORT_LEASE).give_up_after(GIVE_UP);
    let worker = Running::start(worker, succeeds);

    let error = worker.end().await.unwrap_err();
    assert!(matches!(error, WorkerError::Claim(Error::Denied { .. })), "{error:?}");
    assert!(start.elapsed() >= GIVE_UP, "{:?}", start.elapsed());
}

/// R21: if the store keeps refusing settlements, the worker ends after `GIVE_UP`. It
/// makes no claims meanwhile.
pub(crate) async fn lasting_refusal_of_settlements_ends_the_worker(fixture: Fixture) {
    fixture.push("refused").await;
    let locked =
        Faulty::new(fixture.queue.clone()).on_settle(|_, _| Some(Fault::Denied));
    let worker = worker_on(Arc::new(locked)).give_up_after(GIVE_UP);
    let worker = Running::start(worker.lease(Duration::from_secs(60)), succeeds);

    let error = worker.end().await.unwrap_err();
    assert!(matches!(error, WorkerError::Store(Error::Denied { .. })), "{error:?}");
}

/// R21: a worker that has no permission to extend its leases ends. Otherwise it would
/// lose the lease of one job after another.
pub(crate) async fn lasting_refusal_of_heartbeats_ends_the_worker(fixture: Fixture) {
    fixture.push("endless").await;
    let locked =
        Faulty::new(fixture.queue.clone()).on_extend(|_, _| Some(Fault::Denied));
    let worker = worker_on(Arc::new(locked)).lease(SHORT_LEASE).give_up_after(GIVE_UP);
    let worker = Running::start(worker, async |_: JobContext| {
        std::future::pending::<Result<(), Failure>>().await
    });

    let error = worker.end().await.unwrap_err();
    assert!(matches!(error, WorkerError::Store(Error::Denied { .. })), "{error:?}");
}

/// R9, R21: a worker that has no permission to recover jobs ends. Otherwise the jobs of
/// dead workers might wait for ever.
pub(crate) async fn lasting_refusal_of_recovery_ends_the_worker(fixture: Fixture) {
    let locked =
        Faulty::new(fixture.queue.clone()).on_recover(|_, _| Some(Fault::Denied));
    let worker = worker_on(Arc::new(locked)).give_up_after(GIVE_UP);
    let worker = Running::start(worker, succeeds);

    let error = worker.end().await.unwrap_err();
    assert!(matches!(error, WorkerError::Store(Error::Denied { .. })), "{error:?}");
}

/// R24: a worker that ends because its recoveries are refused gives its handlers the grace
/// time. Their leases are extended as before, so their work can still be settled.
pub(crate) async fn refused_recovery_leaves_handlers_the_grace_time(fixture: Fixture) {
    let has_begun = Arc::new(AtomicBool::new(false));
    let begun = Arc::clone(&has_begun);
    let locked = Faulty::new(fixture.queue.clone())
        .on_recover(move |_, _| begun.load(SeqCst).then_some(Fault::Denied));

    let error = error_while_a_handler_runs(&fixture, locked, has_begun).await;
    assert!(matches!(error, WorkerError::Store(Error::Denied { .. })), "{error:?}");
}

/// R24: a worker that ends because its claims are refused gives its handlers the grace
/// time. The store may refuse new jobs only.
pub(crate) async fn refused_claims_leave_handlers_the_grace_time(fixture: Fixture) {
    let has_begun = Arc::new(AtomicBool::new(false));
    let locked = Faulty::new(fixture.queue.clone())
        .on_claim(|call, _| (call > 0).then_some(Fault::Denied));

    let error = error_while_a_handler_runs(&fixture, locked, has_begun).await;
    assert!(matches!(error, WorkerError::Claim(Error::Denied { .. })), "{error:?}");
}

/// Runs a worker on `locked`, whose calls are refused, with a handler that ends a while
/// after the worker has begun to stop. Asserts that its job is done, and returns the error
/// of the worker.
async fn error_while_a_handler_runs(
    fixture: &Fixture,
    locked: Faulty,
    has_begun: Arc<AtomicBool>,
) -> WorkerError {
    fixture.push("long").await;
    let worker = worker_on(Arc::new(locked)).give_up_after(GIVE_UP).grace(LONG_LEASE);
    let progress = worker.progress();
    let worker = Running::start(worker, move |_: JobContext| {
        has_begun.store(true, SeqCst);
        let progress = progress.clone();
        async move {
            eventually(|| progress.state() == WorkerState::Stopping).await;
            tokio::time::sleep(Duration::from_millis(50)).await;
            Ok::<_, Failure>(())
        }
    });

    let error = worker.end().await.unwrap_err();
    let stats = fixture.stats().await;
    assert_eq!((stats.finished, stats.ready, stats.leased), (1, 0, 0));
    error
}

/// A queue of two stores. One of them denies the first recoveries, after the other has
/// recovered a page.
#[derive(Default)]
struct DeniedInPart(AtomicUsize);

#[async_trait::async_trait]
impl Override for DeniedInPart {
    async fn recover(
        &self,
        right: &Right,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        let operation = Operation::Recover;
        match self.0.fetch_add(1, SeqCst) {
            0 | 2 | 4 => Err(Error::Denied {
                at: ErrorContext { backend: "in part", operation },
                source: "as the test wants it".into(),
            }),
            1 | 3 => Ok(Recovered { more: true, ..Recovered::default() }),
            _ => right.recover(page).await,
        }
    }
}

/// R21: a worker gives up only if no recovery works. While one store of its queue denies
/// them and the others recover, it goes on.
pub(crate) async fn recovery_that_works_in_part_ends_no_worker(fixture: Fixture) {
    let in_part = Arc::new(DeniedInPart::default());
    let environment = Environment::default();
    let right = Right { queue: fixture.queue.clone(), environment };
    let queue = OverriddenQueue::new(right, in_part.clone());
    let worker = worker_on(Arc::new(queue)).give_up_after(Duration::from_millis(1));
    let worker = Running::start(worker, succeeds);

    eventually(|| in_part.0.load(SeqCst) > 5).await;

    worker.stop().await;
}

/// R21: a worker whose store is a replica waits for its promotion until `GIVE_UP` has
/// passed, even before the first claim.
pub(crate) async fn store_that_takes_no_writes_is_waited_for(fixture: Fixture) {
    fixture.push("kept").await;
    let demoted = Faulty::new(fixture.queue.clone())
        .on_claim(|call, _| (call < 3).then_some(Fault::ReadOnly));
    let worker = Running::start(worker_on(Arc::new(demoted)), succeeds);
    fixture.until(|stats| stats.finished == 1).await;
    assert_eq!(worker.stop().await.done, 1);

    let replica =
        Faulty::new(fixture.queue.clone()).on_claim(|_, _| Some(Fault::ReadOnly));
    let worker = worker_on(Arc::new(replica)).give_up_after(GIVE_UP);
    let error = Running::start(worker, succeeds).end().await.unwrap_err();
    assert!(matches!(error, WorkerError::Claim(Error::ReadOnly { .. })), "{error:?}");
}

/// R21: a worker on a server of the wrong kind ends at once, because no repair would
/// help.
pub(crate) async fn wrong_server_ends_the_worker_at_once(fixture: Fixture) {
    let moved = Arc::new(
        Faulty::new(fixture.queue.clone())
            .on_claim(|call, _| (call > 0).then_some(Fault::WrongServer)),
    );
    // The first claim waits for a third of a lease.
    let worker = worker_on(moved.clone()).lease(SHORT_LEASE);
    let worker = worker.give_up_after(Duration::from_secs(3600));
    let worker = Running::start(worker, succeeds);

    let error = worker.end().await.unwrap_err();
    assert!(
        matches!(error, WorkerError::Claim(Error::WrongServer { .. })),
        "{error:?}"
    );
    assert_eq!(moved.claims.calls(), 2);
}

/// R1, R21: a worker ends when another file replaces its SQLite file. It neither writes
/// to the old file nor retries for ever.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_on_a_replaced_file_ends() {
    let (fixture, other) = (Fixture::sqlite().await, Fixture::sqlite().await);
    let worker = Running::start(fixture.worker().give_up_after(GIVE_UP), succeeds);
    fixture.push("before").await;
    worker.until(|summary| summary.done == 1).await;
    let path = |url: &str| url.strip_prefix("sqlite:").unwrap().to_owned();
    std::fs::rename(path(&other.url), path(&fixture.url)).unwrap();

    let error = worker.end().await.unwrap_err();
    let (WorkerError::Claim(cause) | WorkerError::Store(cause)) = error else {
        panic!("{error}");
    };
    let message = cause.full_message();
    assert!(message.contains("names another file now"), "{message}");
}

/// R21: a worker whose permissions were revoked ends with the server's error.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_without_its_rights_ends() {
    let fixture = Fixture::zset().await;
    let worker = Running::start(fixture.worker().give_up_after(GIVE_UP), succeeds);
    fixture.push("before").await;
    worker.until(|summary| summary.done == 1).await;
    let StoreLocation::Server(server) = &fixture.store else { unreachable!() };
    let taken =
        server.command(&[b"ACL", b"SETUSER", b"default", b"-evalsha", b"-eval"]);
    assert_eq!(taken, b"+OK\r\n");

    let error = worker.end().await.unwrap_err();
    let (WorkerError::Claim(cause) | WorkerError::Store(cause)) = error else {
        panic!("{error}");
    };
    assert!(matches!(cause, Error::Denied { .. }), "{cause:?}");
}

/// R21: a worker on a demoted server continues after a promotion, and ends without one.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn worker_on_a_replica_waits_for_its_promotion() {
    let fixture = Fixture::zset().await;
    let StoreLocation::Server(server) = &fixture.store else { unreachable!() };
    // The server becomes a replica of port 1, where no server listens, so it copies
    // no data.
    let demote = || server.command(&[b"REPLICAOF", b"127.0.0.1", b"1"]);
    let counted = Arc::new(Faulty::new(fixture.queue.clone()));
    let worker = Running::start(
        // Its claims wait briefly: an idle claim does not see that its server was demoted.
        worker_on(counted.clone())
            .lease(SHORT_LEASE)
            .give_up_after(Duration::from_secs(5)),
        succeeds,
    );
    fixture.push("before").await;
    worker.until(|summary| summary.done == 1).await;

    demote();
    let claims = counted.claims.calls();
    eventually(|| counted.claims.calls() > claims + 2).await;
    server.command(&[b"REPLICAOF", b"NO", b"ONE"]);
    fixture.until(|stats| stats.finished == 1).await;
    fixture.push("after").await;
    worker.until(|summary| summary.done == 2).await;
    demote();

    let error = worker.end().await.unwrap_err();
    let (WorkerError::Claim(cause) | WorkerError::Store(cause)) = error else {
        panic!("{error}");
    };
    assert!(matches!(cause, Error::ReadOnly { .. }), "{cause:?}");
}

/// R1, R21: a worker survives the restart of its server from an append-only file, and
/// every job is done.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn server_restart_is_survived() {
    let mut fixture = Fixture::zset().await;
    fixture.push_many(300).await;

    // The reply to a claim may be lost with its connection. The jobs of that claim are ready
    // again when their leases end (R10).
    let worker = fixture.worker().lease(SHORT_LEASE);
    let worker = Running::start(worker, async |_: JobContext| {
        tokio::time::sleep(Duration::from_millis(20)).await;
        Ok::<_, Failure>(())
    });
    worker.until(|summary| summary.done >= 20).await;
    for _ in 0..3 {
        let StoreLocation::Server(server) = &mut fixture.store else { unreachable!() };
        server.kill();
        tokio::time::sleep(Duration::from_millis(100)).await;
        server.restart();
        let done = worker.progress.summary().done;
        worker.until(|summary| summary.done > done).await;
    }
    fixture.until(|stats| stats.unfinished() == 0).await;

    worker.stop().await;
    let stats = fixture.stats().await;
    assert_eq!((stats.finished, stats.dead), (300, 0));
}
