//! A worker whose commands are refused. It continues after an error that ends by
//! itself, ends after an error that a person must repair, and loses no result of a
//! handler (R1, R21).

use std::{
    collections::BTreeMap,
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::{Duration, Instant},
};

use bytes::Bytes;
use relq_worker::{Failure, Handler, JobContext, Worker, WorkerError};
use tokio::sync::Notify;

use super::{ByAPerson, ByItself, REFUSALS};
use crate::{
    cases::case,
    harness::{actor::Actor, store::Store, times::HELD},
    proxy::Fault,
};

/// Three jobs and how often each runs: "done" once, "retried" twice because its first
/// attempt fails, and "buried" once because its handler asks for burial.
const JOBS: [(&str, u32); 3] = [("done", 1), ("retried", 2), ("buried", 1)];

/// The server refuses one command of the worker out of this many.
const ONE_IN: u32 = 6;

/// A number of commands that is larger than any worker sends in one of these cases.
const ALL: u32 = 3000;

/// How long a worker continues after an error that only a person can repair, before it
/// ends.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// How long a worker that is ending tries to settle its jobs.
const GRACE: Duration = Duration::from_secs(1);

/// How far the clock is advanced in one go. Timers that end within that time fire
/// together.
const STEP: Duration = Duration::from_secs(2);

/// The length of the lease of a worker that is to lose its jobs while the server
/// refuses all commands.
const BRIEFLY_HELD: Duration = Duration::from_secs(8);

/// How long the server refuses all commands of a worker that must continue.
const REFUSED: Duration = Duration::from_secs(30);

/// The time limit within which a worker must end. It is longer than its calls, its
/// pauses between calls and its last attempts to settle jobs take.
const ENDED: Duration = Duration::from_secs(100);

/// For how long, by the clock of the machine, a call may also go on. On a busy machine the
/// virtual clock may pass its limit before the worker has run at all.
const STARVED: Duration = Duration::from_secs(20);

/// The pause between two steps of the virtual clock after it has passed its limit.
const PAUSE: Duration = Duration::from_millis(50);

/// Counts how often the handler has run each job, by the job's payload.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<BTreeMap<Bytes, u32>>>);

impl Runs {
    fn of(&self, payload: &str) -> u32 {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(payload.as_bytes()).copied().unwrap_or_default()
    }

    /// Counts the run of a job, and ends the job as its payload says (see [`JOBS`]).
    fn run(&self, job: &JobContext) -> Result<(), Failure> {
        let mut runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let times = runs.entry(job.payload().clone()).or_default();
        *times += 1;
        match &job.payload()[..] {
            b"retried" if *times == 1 => {
                Err(Failure::retry_after(Duration::ZERO, "it failed"))
            }
            b"buried" => Err(Failure::dead("it cannot be done")),
            _ => Ok(()),
        }
    }

    /// Returns a handler that counts in `self` how often it runs each job.
    fn handler(&self) -> impl Handler + use<> {
        let runs = self.clone();
        move |job: JobContext| {
            let ended = runs.run(&job);
            async move { ended }
        }
    }
}

/// Runs a worker until the queue is empty. The worker has the actor's id and leases of
/// length `lease`.
async fn until_empty(
    store: &Store,
    actor: &Actor,
    lease: Duration,
    handler: impl Handler,
) -> Result<(), WorkerError> {
    let slots = NonZeroU32::new(2).expect("not zero");
    let worker = Worker::new(actor.queue())
        .environment(store.environment())
        .worker_id(actor.worker().clone())
        .concurrency(slots)
        .lease(lease)
        .grace(GRACE)
        .give_up_after(GIVE_UP_AFTER);
    let ran = worker.run_until_empty(actor.queue(), Duration::ZERO, handler);
    Box::pin(ran).await.map(drop)
}

/// Advances the clock by one [`STEP`] after another, by `limit` in all.
async fn pass(store: &Store, limit: Duration) {
    for _ in 0..limit.as_millis() / STEP.as_millis() {
        store.settled().await;
        store.advance(STEP).await;
    }
    store.settled().await;
}

/// Runs the call while the clock advances by `limit`. Returns `None` if the call has not
/// ended then.
async fn within<T>(
    store: &Store,
    limit: Duration,
    call: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        ended = call => Some(ended),
        () = pass(store, limit) => None,
    }
}

/// Runs a call that must end while the clock advances by [`ENDED`]. Returns `None` if it
/// has not ended after [`STARVED`] either.
async fn in_time<T>(store: &Store, call: impl Future<Output = T>) -> Option<T> {
    let passing = async {
        let began = Instant::now();
        pass(store, ENDED).await;
        while began.elapsed() < STARVED {
            tokio::time::sleep(PAUSE).await;
            pass(store, STEP).await;
        }
    };
    tokio::select! {
        biased;
        ended = call => Some(ended),
        () = passing => None,
    }
}

fn hangs(store: &Store, what: &str) -> ! {
    let calls = store.calls().in_progress();
    panic!("HANG, R21: {what} waits for more than {ENDED:?}; {calls}")
}

/// Lets all leases expire, and runs a new worker, whose commands are not refused, until
/// the queue is empty.
async fn finish_the_rest(store: &Store, witness: &Actor, runs: &Runs) {
    store.advance(HELD).await;
    witness.recover_all().await;
    let next = store.actor("next").await;
    let ended = in_time(store, until_empty(store, &next, HELD, runs.handler())).await;
    assert!(matches!(ended, Some(Ok(()))), "the next worker: {ended:?}");
}

/// Asserts that the worker's error or one of its causes has the code of the server's
/// error, because an operator searches for that code. Upper and lower case are not
/// compared, because the client library writes codes in its own way.
fn assert_names(error: &WorkerError, refusal: &str, what: &str) {
    let mut told = error.to_string();
    let mut cause = std::error::Error::source(error);
    while let Some(error) = cause {
        told = format!("{told}: {error}");
        cause = error.source();
    }
    let code = refusal.split(' ').next().unwrap_or(refusal);
    let names_it = told.to_lowercase().contains(&code.to_lowercase());
    assert!(names_it, "{what}: the worker's error does not say so: {told}");
}

case!(a_worker_outlives_single_refusals: R1 R21 @ redis);
/// The server refuses every sixth command of a worker. The worker runs each job exactly
/// as often as without refusals, and each job ends as its handler says. If only a person
/// can repair the cause of the refusal, the worker may instead end with that error. Then
/// a second worker runs the remaining jobs, and each job may run once more.
async fn a_worker_outlives_single_refusals(store: &Store) {
    let witness = store.actor("witness").await;
    for (number, (refusal, heals)) in REFUSALS.into_iter().enumerate() {
        // Every sixth command is refused, beginning with the first, third and fifth for
        // one half of the errors, and with the second, fourth and sixth for the other.
        for first in (1..=ONE_IN).skip(number % 2).step_by(2) {
            let (runs, victim) = (Runs::default(), store.actor("victim").await);
            witness.store(JOBS.map(|(payload, _)| payload)).await;
            for command in (first..ALL).step_by(ONE_IN as usize) {
                store.inject("victim", command, Fault::Error(refusal.to_owned()));
            }

            let working = until_empty(store, &victim, HELD, runs.handler());
            let ended = in_time(store, working).await;
            let ended = ended.unwrap_or_else(|| hangs(store, "the worker"));

            store.heal().await;
            let what = format!("from command {first} on one in {ONE_IN} is {refusal}");
            let mut once_more = 0;
            if let Err(error) = ended {
                assert_eq!(heals, ByAPerson, "{what}: the worker ended: {error:?}");
                assert_names(&error, refusal, &what);
                finish_the_rest(store, &witness, &runs).await;
                once_more = 1;
            }
            for (payload, wanted) in JOBS {
                let times = runs.of(payload);
                let right = wanted..=wanted + once_more;
                assert!(right.contains(&times), "{what}: {payload} ran {times} times");
            }
            let buried = witness.the_dead_one().await.payload;
            assert_eq!(buried, "buried", "{what}");
            witness.purge().await.expect("purged");
        }
    }
}

/// A handler that tells `started` that it has begun, and runs the job when `finish` is
/// notified.
fn held_up(
    runs: &Runs,
    started: &Arc<Notify>,
    finish: &Arc<Notify>,
) -> impl Handler + use<> {
    let (runs, started, finish) =
        (runs.clone(), Arc::clone(started), Arc::clone(finish));
    move |job: JobContext| {
        let (runs, finish) = (runs.clone(), Arc::clone(&finish));
        started.notify_one();
        async move {
            finish.notified().await;
            runs.run(&job)
        }
    }
}

case!(a_worker_that_is_always_refused_loses_nothing: R1 R21 @ redis);
/// All commands of a worker are refused while it runs a job. If the error ends by
/// itself, the worker continues however long that takes, and then settles the job. If a
/// person must help, the worker ends with the error.
async fn a_worker_that_is_always_refused_loses_nothing(store: &Store) {
    let witness = store.actor("witness").await;
    for (refusal, heals) in REFUSALS {
        let (runs, victim) = (Runs::default(), store.actor("victim").await);
        witness.store_one("done").await;
        let (started, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let handler = held_up(&runs, &started, &finish);
        // A worker that ends tries to settle its jobs until their leases have expired.
        let lease = if heals == ByItself { HELD } else { BRIEFLY_HELD };
        let mut working = Box::pin(until_empty(store, &victim, lease, handler));
        begin(store, &mut working, &started).await;

        store.refuse("victim", ALL, refusal);
        finish.notify_one();
        let early = match heals {
            ByItself => within(store, REFUSED, &mut working).await,
            ByAPerson => in_time(store, &mut working).await,
        };

        store.heal().await;
        let what = format!("always {refusal}");
        match (heals, early) {
            (ByItself, None) => {
                let ended = in_time(store, working).await;
                assert!(matches!(ended, Some(Ok(()))), "{what}, then not: {ended:?}");
                assert_eq!(runs.of("done"), 1, "{what}: runs of the job");
            }
            (ByAPerson, Some(Err(error))) => {
                assert_names(&error, refusal, &what);
                finish.notify_one();
                finish_the_rest(store, &witness, &runs).await;
            }
            (_, early) => panic!("{what}: the worker has ended as {early:?}"),
        }
        assert_eq!(witness.figures().await.unfinished(), 0, "{what}");
    }
}

/// Lets the worker run until its job has started.
async fn begin<T: fmt::Debug>(
    store: &Store,
    working: &mut (impl Future<Output = T> + Unpin),
    started: &Notify,
) {
    let beginning = async {
        tokio::select! {
            ended = working => panic!("it ended early: {ended:?}"),
            () = started.notified() => {}
        }
    };
    let begun = in_time(store, beginning).await;
    begun.unwrap_or_else(|| hangs(store, "the start of the job"));
}
