//! `?replicas=N`: a push or a settlement returns only when replicas have it.

use std::{
    collections::{BTreeMap, BTreeSet},
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use relq::{
    ClaimRequest, Disposition, Error, JobId, NewJob, PushToken, Queue,
    ReliableQueueExt, Settlement, WorkerId,
    batch::{BatchId, Change, NewBatch},
    environment::Timestamp,
    error::Effect,
    operator::{JobState, JobView, PeekRequest, Selection, StateDetail, WorkerReport},
    results::Reported,
    schedule::{ScheduleName, Tick},
    worker::{Failure, JobContext, Worker},
};
use relq_conformance::server::Node;

use crate::{
    fixture::{
        LIMIT, drain, eventually, master_and_replica, name, numbers, open,
        open_after_fail_over,
    },
    sentinel::Watched,
};

pub(crate) const BACKENDS: [&str; 5] =
    ["zset", "processing-list", "circular", "keyspace", "stream"];

/// How long a call waits for a replica that is frozen.
const FROZEN: &str = "200ms";

/// How long a call waits at most for a replica that runs, on a machine that may stand
/// still.
const RUNNING: &str = "20s";

/// The URL of a queue whose pushes and settlements wait for that many replicas, for at
/// most this time.
fn url(backend: &str, server: &Node, replicas: u32, timeout: &str) -> String {
    let options = format!("replicas={replicas}&replica_timeout={timeout}");
    format!("{backend}+redis://{}?{options}", server.address())
}

/// Pushes the job, and waits until a replica has it.
async fn push_confirmed(backend: &str, server: &Node, payload: &'static str) {
    let queue = open(&url(backend, server, 1, RUNNING)).await;
    queue.push_one(payload.into()).await.unwrap();
}

fn token() -> PushToken {
    PushToken::new("one-call").unwrap()
}

fn assert_not_replicated<T: std::fmt::Debug>(outcome: Result<T, Error>, words: &str) {
    let error = outcome.unwrap_err();
    assert!(matches!(error, Error::NotReplicated { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::Maybe);
    let message = error.full_message();
    assert!(message.contains(words), "{message}");
}

/// Repeats the push until the thawed replica confirms it.
async fn push_until_confirmed(queue: &dyn Queue, job: &[NewJob]) {
    let start = Instant::now();
    while let Err(error) = queue.push(job, Some(&token())).await {
        assert!(matches!(error, Error::NotReplicated { .. }), "{error:?}");
        assert!(start.elapsed() < LIMIT, "the replica is not in step: {error}");
    }
}

/// How many times the server ran the command.
pub(crate) fn calls_of(server: &Node, command: &str) -> u64 {
    let stats = server.ask(&["INFO", "commandstats"]);
    let line = stats.lines().find_map(|line| {
        line.strip_prefix(&format!("cmdstat_{command}:calls="))?.split(',').next()
    });
    line.map_or(0, |calls| calls.parse().unwrap())
}

/// R1, R4, R21: if the replica does not answer, a push fails, and its error says that
/// the job may be lost. A repetition of the push stores no second job, and also fails,
/// even on the connection of another client. It succeeds once the replica has the first
/// push.
#[tokio::test(flavor = "multi_thread")]
async fn a_push_is_confirmed_when_a_replica_has_it() {
    for backend in BACKENDS {
        let (master, replica) = master_and_replica().await;
        push_confirmed(backend, &master, "first").await;
        let url = url(backend, &master, 1, FROZEN);
        let queue = open(&url).await;
        let job = [NewJob::new("second")];

        replica.freeze();
        let words = "0 of 1 replicas had it after 200ms";
        assert_not_replicated(queue.push(&job, Some(&token())).await, words);
        let other = open(&url).await;
        assert_not_replicated(other.push(&job, Some(&token())).await, words);

        replica.thaw();
        push_until_confirmed(&*other, &job).await;
        assert_eq!(queue.stats().await.unwrap().ready, 2, "{backend}");
        assert!(calls_of(&master, "wait") > 0, "{backend}");
    }
}

/// A push waits for a replica for longer than for a response, if `replica_timeout` is
/// longer.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_may_take_longer_than_a_response() {
    const RESPONSE: Duration = Duration::from_secs(1);
    let (master, replica) = master_and_replica().await;
    push_confirmed("zset", &master, "first").await;
    let url = url("zset", &master, 1, RUNNING) + "&response_timeout=1s";
    let queue = open(&url).await;

    replica.freeze();
    let pushing = tokio::spawn(async move { queue.push_one("second".into()).await });
    let is_blocked = || master.ask(&["CLIENT", "LIST"]).contains("flags=b");
    eventually("the push waits", is_blocked).await;
    // A response would be given up meanwhile.
    tokio::time::sleep(2 * RESPONSE).await;
    replica.thaw();

    pushing.await.unwrap().unwrap();
}

/// R7: claims, heartbeats, recoveries and the release of a worker do not wait for replicas.
/// A settlement does, and takes effect although it fails.
#[tokio::test(flavor = "multi_thread")]
async fn claims_do_not_wait_and_settlements_do() {
    for backend in BACKENDS {
        let (master, replica) = master_and_replica().await;
        push_confirmed(backend, &master, "job").await;
        let queue = open(&url(backend, &master, 1, FROZEN)).await;
        let worker = WorkerId::new("w").unwrap();
        let lease = Duration::from_secs(30);

        replica.freeze();
        let ask = ClaimRequest::new(worker.clone(), lease);
        let job = queue.claim_one(&ask).await.unwrap().unwrap();
        let held = [job.receipt.clone()];
        queue.extend(&worker, &held, lease).await.unwrap();
        assert_not_replicated(queue.ack(&job.receipt).await, "0 of 1 replicas");
        let recovered = queue.recover(NonZeroU32::MIN).await;
        recovered.unwrap_or_else(|error| panic!("{backend} recover: {error}"));
        let released = queue.release_worker(&worker).await;
        released.unwrap_or_else(|error| panic!("{backend} release_worker: {error}"));

        let stats = queue.stats().await.unwrap();
        assert_eq!((stats.leased, stats.finished), (0, 1), "{backend}");
    }
}

/// R29, R33: the reports of a worker do not wait for replicas. The next report replaces one
/// that a fail-over loses.
#[tokio::test(flavor = "multi_thread")]
async fn reports_do_not_wait() {
    let (master, replica) = master_and_replica().await;
    let producer = open(&url("zset", &master, 1, RUNNING)).await;
    producer.push_one(NewJob::new("job").keep_result(LIMIT)).await.unwrap();
    let queue = open(&url("zset", &master, 1, FROZEN)).await;
    let worker = WorkerId::new("w").unwrap();
    let ask = ClaimRequest::new(worker.clone(), Duration::from_secs(30));
    let job = queue.claim_one(&ask).await.unwrap().unwrap();

    replica.freeze();
    let report = WorkerReport::new(worker, NonZeroU32::MIN);
    queue.report_worker(&report).await.unwrap();
    let results = queue.result_queue().unwrap();
    let reported = results.report_progress(&job.receipt, b"half").await.unwrap();

    assert_eq!(reported, Reported::Stored);
}

/// Each call of an operator, of a batch or of a schedule that changes something waits for
/// replicas. No call that only reads does.
#[tokio::test(flavor = "multi_thread")]
async fn changes_wait_and_reads_do_not() {
    let (master, replica) = master_and_replica().await;
    push_confirmed("stream", &master, "job").await;
    let queue = open(&url("stream", &master, 1, FROZEN)).await;
    let id = JobId::new("kept").unwrap();
    let kept = NewJob::new("kept").id(id.clone()).keep_result(LIMIT);
    let batch = BatchId::new("batch").unwrap();
    let name = ScheduleName::new("hourly").unwrap();
    let one = NonZeroU32::MIN;
    let (batches, results, scheduler, inspector, restorer) = (
        queue.batch_queue().unwrap(),
        queue.result_queue().unwrap(),
        queue.schedule_queue().unwrap(),
        queue.inspect_queue().unwrap(),
        queue.restore_queue().unwrap(),
    );
    let view = JobView::new(
        Some(JobId::new("restored").unwrap()),
        "restored",
        StateDetail::Ready,
    );
    let tick = |at| Tick {
        name: name.clone(),
        definition: "definition".into(),
        at: Timestamp::from_unix_ms(at),
    };

    replica.freeze();
    for (call, outcome) in [
        ("push", queue.push(&[kept], None).await.map(drop)),
        ("create", batches.create(&NewBatch::new(batch.clone())).await.map(drop)),
        ("add", batches.add(&batch, &["piece".into()], None).await.map(drop)),
        ("alter", batches.alter(&batch, &Change::default()).await.map(drop)),
        ("seal", batches.seal(&batch).await.map(drop)),
        ("cancel_batch", batches.cancel_batch(&batch).await.map(drop)),
        ("put_schedule", scheduler.put_schedule(&name, b"definition").await.map(drop)),
        ("push_tick", scheduler.push_tick(&tick(1), "ticked".into()).await.map(drop)),
        ("remove_schedule", scheduler.remove_schedule(&name).await.map(drop)),
        ("pause", queue.pause().await),
        ("restore", restorer.restore(&[view]).await.map(drop)),
        ("resume", queue.resume().await),
        ("run_now", inspector.run_now(&id).await.map(drop)),
        ("redrive", queue.redrive(&Selection::All).await.map(drop)),
        ("purge_dead", queue.purge_dead(&Selection::All).await.map(drop)),
        ("cancel", queue.cancel(&id).await.map(drop)),
        ("purge", queue.purge().await.map(drop)),
    ] {
        let error = outcome.err().unwrap_or_else(|| panic!("{call} does not wait"));
        assert!(matches!(error, Error::NotReplicated { .. }), "{call}: {error:?}");
    }
    for (call, outcome) in [
        ("stats", queue.stats().await.map(drop)),
        ("peek", queue.peek(&PeekRequest::new(JobState::Ready, one)).await.map(drop)),
        ("audit", queue.audit().await.map(drop)),
        ("batch", batches.batch(&batch).await.map(drop)),
        ("list_batches", batches.list_batches(None, one).await.map(drop)),
        ("wait_batch", batches.wait_batch(&batch, Duration::ZERO).await.map(drop)),
        (
            "read_results",
            results.read_results(std::slice::from_ref(&id)).await.map(drop),
        ),
        ("wait_result", results.wait_result(&id, Duration::ZERO).await.map(drop)),
        ("schedules", scheduler.schedules().await.map(drop)),
        ("job", inspector.job(&id).await.map(drop)),
        ("workers", inspector.workers(None, one).await.map(drop)),
    ] {
        outcome.unwrap_or_else(|error| panic!("{call}: {}", error.full_message()));
    }
}

/// If no replica confirms a settlement, the worker still receives the jobs that the
/// same call claims.
#[tokio::test(flavor = "multi_thread")]
async fn an_unconfirmed_settlement_keeps_the_claim_beside_it() {
    let (master, replica) = master_and_replica().await;
    for payload in ["one", "two"] {
        push_confirmed("zset", &master, payload).await;
    }
    let queue = open(&url("zset", &master, 1, FROZEN)).await;
    let ask = ClaimRequest::new(WorkerId::new("w").unwrap(), Duration::from_secs(30));
    let one = queue.claim_one(&ask).await.unwrap().unwrap();
    let done = [Settlement::new(one.receipt, Disposition::Done)];

    replica.freeze();
    let both = queue.settle_and_claim(&done, &ask).await;

    assert_not_replicated(both.settled, "0 of 1 replicas");
    assert_eq!(&both.claimed.unwrap()[0].payload[..], b"two");
}

/// A URL that asks for more replicas than exist leads to an error that says so. Without
/// the option no call sends WAIT.
#[tokio::test(flavor = "multi_thread")]
async fn the_error_counts_the_replicas() {
    let (master, _replica) = master_and_replica().await;
    let plain = open(&format!("zset+redis://{}", master.address())).await;
    plain.push_one("job".into()).await.unwrap();
    assert_eq!(calls_of(&master, "wait"), 0);

    let queue = open(&url("zset", &master, 2, "5s")).await;
    assert_not_replicated(queue.push_one("job".into()).await, "1 of 2 replicas");
}

/// R7: a worker whose replica is away for a while goes on when it is back. It runs no
/// job again whose settlement took effect and was not confirmed.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_outlives_the_absence_of_its_replica() {
    let (master, replica) = master_and_replica().await;
    let jobs = numbers(20).map(NewJob::new).collect::<Vec<_>>();
    let producer = open(&url("zset", &master, 1, RUNNING)).await;
    producer.push(&jobs, None).await.unwrap();
    let queue = open(&url("zset", &master, 1, FROZEN)).await;
    replica.freeze();
    let before = calls_of(&master, "wait");
    let runs = Arc::new(Mutex::new(BTreeMap::<Vec<u8>, usize>::new()));
    let counting = Arc::clone(&runs);
    let handler = move |job: JobContext| {
        *counting.lock().unwrap().entry(job.payload().to_vec()).or_default() += 1;
        async { Ok::<(), Failure>(()) }
    };

    let worker = Worker::new(queue.clone());
    let working = worker.run_until_empty(queue.clone(), Duration::ZERO, handler);
    let thawing = async {
        eventually("settlements fail", || calls_of(&master, "wait") > before + 2).await;
        replica.thaw();
    };
    let (ended, ()) = tokio::join!(working, thawing);

    ended.unwrap();
    assert_eq!(queue.stats().await.unwrap().finished, 20);
    let runs = runs.lock().unwrap();
    assert!(runs.len() == 20 && runs.values().all(|times| *times == 1), "{runs:?}");
}

/// R25: what else the marker says does not matter: an option of the backend that was set
/// when the queue was new, or the number of parts while it is changed.
#[tokio::test(flavor = "multi_thread")]
async fn a_marker_with_other_options_confirms_as_well() {
    let (master, _replica) = master_and_replica().await;
    let at = format!("redis://{}", master.address());
    for (first, then) in [
        (format!("processing-list+{at}"), format!("processing-list+{at}?mode=shared")),
        (
            format!("zset+{at}?partitions=3"),
            format!("zset+{at}?partitions=2&claim_from=3"),
        ),
    ] {
        open(&first).await.push_one("first".into()).await.unwrap();
        let options = format!("replicas=1&replica_timeout={RUNNING}");
        let queue = open(&format!("{then}&{options}")).await;

        queue.push_one("second".into()).await.unwrap();

        assert_eq!(queue.stats().await.unwrap().ready, 2, "{then}");
        queue.purge().await.unwrap();
        assert!(relq::redis::unmark(&first, &name()).await.unwrap(), "{first}");
    }
}

/// Pushes that are made at the same time share one WAIT.
#[tokio::test(flavor = "multi_thread")]
async fn gathered_pushes_share_one_wait() {
    let (master, _replica) = master_and_replica().await;
    let queue = open(&url("zset", &master, 1, RUNNING)).await;
    queue.push_one("first".into()).await.unwrap();
    let before = calls_of(&master, "wait");

    let pushes = numbers(200).map(|number| {
        let queue = Arc::clone(&queue);
        tokio::spawn(async move { queue.push_one(NewJob::new(number)).await.unwrap() })
    });
    for push in pushes.collect::<Vec<_>>() {
        push.await.unwrap();
    }

    let waits = calls_of(&master, "wait") - before;
    assert!(waits < 100, "200 pushes sent {waits} times WAIT");
    assert_eq!(drain(&*queue, 201).await.len(), 201);
}

/// R1: every job whose push was confirmed survives the loss of the master.
#[tokio::test(flavor = "multi_thread")]
async fn a_fail_over_keeps_what_was_confirmed() {
    let mut watched = Watched::start().await;
    let hosts = watched.hosts();
    let url = format!("zset+redis-sentinel://{hosts}/main?replicas=1");
    let queue = open(&url).await;

    let count = AtomicUsize::new(0);
    let killing = async {
        let are_enough = || count.load(Ordering::Relaxed) > ENOUGH;
        eventually("some pushes are confirmed", are_enough).await;
        watched.master.kill();
    };
    let (confirmed, ()) = tokio::join!(push_until_refused(&*queue, &count), killing);

    // The promoted server has no replica, so settlements must not wait for one.
    let plain = format!("zset+redis-sentinel://{hosts}/main");
    let queue = open_after_fail_over(&plain).await;
    let there = drain(&*queue, confirmed.len()).await;
    let lost: Vec<_> = confirmed.difference(&there).collect();
    assert!(lost.is_empty(), "confirmed and lost: {lost:?}");
}

/// A fail-over loses the master after more than this many pushes were confirmed.
const ENOUGH: usize = 20;

/// Pushes numbered jobs until a push fails after [`ENOUGH`] were confirmed. Returns those
/// that were confirmed.
async fn push_until_refused(
    queue: &dyn Queue,
    count: &AtomicUsize,
) -> BTreeSet<String> {
    let mut confirmed = BTreeSet::new();
    for number in numbers(1_000_000) {
        if queue.push_one(NewJob::new(number.clone())).await.is_ok() {
            confirmed.insert(number);
            count.fetch_add(1, Ordering::Relaxed);
        } else if confirmed.len() > ENOUGH {
            break;
        }
    }
    confirmed
}
