//! A worker whose commands are refused: it outlives what heals by itself, ends by what a
//! person has to change, and keeps the results of its handlers (R1, R21).

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
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

/// Three jobs, and how often each is run: once to its end, twice because its first attempt
/// fails, and once because it is buried.
const JOBS: [(&str, u32); 3] = [("done", 1), ("retried", 2), ("buried", 1)];

/// One command of a worker in so many is refused.
const ONE_IN: u32 = 6;

/// More commands than a worker sends in one of these cases.
const ALL: u32 = 3000;

/// How long a worker goes on after an error that only a person can repair.
const GIVE_UP_AFTER: Duration = Duration::from_secs(10);

/// How long a worker that ends tries to settle its jobs.
const GRACE: Duration = Duration::from_secs(1);

/// Time passes in such steps, and what is due in one happens together.
const STEP: Duration = Duration::from_secs(2);

/// A lease that ends while all commands are refused.
const BRIEFLY_HELD: Duration = Duration::from_secs(8);

/// How long all commands are refused.
const REFUSED: Duration = Duration::from_secs(30);

/// Longer than a worker whose commands are refused may take to end: its calls, its pauses
/// and its last tries to settle are over by then.
const ENDED: Duration = Duration::from_secs(100);

/// How often the handler ran each job.
#[derive(Clone, Default)]
struct Runs(Arc<Mutex<BTreeMap<Bytes, u32>>>);

impl Runs {
    fn of(&self, payload: &str) -> u32 {
        let runs = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        runs.get(payload.as_bytes()).copied().unwrap_or_default()
    }

    /// Ends each of the [`JOBS`] in its way.
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

    /// A handler that counts.
    fn handler(&self) -> impl Handler + use<> {
        let runs = self.clone();
        move |job: JobContext| {
            let ended = runs.run(&job);
            async move { ended }
        }
    }
}

/// Runs a worker of that actor until the queue is empty. It holds jobs by leases of that
/// length.
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

/// Lets time pass, step by step, until the call has ended or the limit is over.
async fn within<T>(
    store: &Store,
    limit: Duration,
    call: impl Future<Output = T>,
) -> Option<T> {
    let passing = async {
        for _ in 0..limit.as_millis() / STEP.as_millis() {
            store.settled().await;
            store.advance(STEP).await;
        }
        store.settled().await;
    };
    tokio::select! {
        biased;
        ended = call => Some(ended),
        () = passing => None,
    }
}

/// Ends all leases, and lets a worker that nothing refuses run what is left.
async fn finish_the_rest(store: &Store, witness: &Actor, runs: &Runs) {
    store.advance(HELD).await;
    witness.recover_all().await;
    let next = store.actor("next").await;
    let ended =
        within(store, ENDED, until_empty(store, &next, HELD, runs.handler())).await;
    assert!(matches!(ended, Some(Ok(()))), "the next worker: {ended:?}");
}

/// Asserts that an error with its causes has the code of the server's error, for which an
/// operator looks. The client library writes codes in its own way.
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
/// A worker of whose commands one in six is refused runs each job exactly as often as
/// without refusals, and each ends as its handler says. A refusal that needs a person's
/// help may end it: then it says so, and another worker does what is left.
async fn a_worker_outlives_single_refusals(store: &Store) {
    let witness = store.actor("witness").await;
    for (number, (refusal, heals)) in REFUSALS.into_iter().enumerate() {
        // Each begins with every other command, one half of them with the second.
        for first in (1..=ONE_IN).skip(number % 2).step_by(2) {
            let (runs, victim) = (Runs::default(), store.actor("victim").await);
            witness.store(JOBS.map(|(payload, _)| payload)).await;
            for command in (first..ALL).step_by(ONE_IN as usize) {
                store.inject("victim", command, Fault::Error(refusal.to_owned()));
            }

            let working = until_empty(store, &victim, HELD, runs.handler());
            let ended = within(store, ENDED, working).await.expect("the worker ends");

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

case!(a_worker_that_is_always_refused_loses_nothing: R1 R21 @ redis);
/// All commands of a worker are refused while it runs a job. Where that heals by itself,
/// the worker goes on for as long as it takes, and settles the job then. Where it does
/// not, the worker ends and says why.
async fn a_worker_that_is_always_refused_loses_nothing(store: &Store) {
    let witness = store.actor("witness").await;
    for (refusal, heals) in REFUSALS {
        let (runs, victim) = (Runs::default(), store.actor("victim").await);
        witness.store_one("done").await;
        let (started, finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
        let handler = {
            let (runs, started, finish) =
                (runs.clone(), Arc::clone(&started), Arc::clone(&finish));
            move |job: JobContext| {
                let (runs, finish) = (runs.clone(), Arc::clone(&finish));
                started.notify_one();
                async move {
                    finish.notified().await;
                    runs.run(&job)
                }
            }
        };
        // A worker that ends tries to settle its jobs for as long as it holds them.
        let lease = if heals == ByItself { HELD } else { BRIEFLY_HELD };
        let mut working = Box::pin(until_empty(store, &victim, lease, handler));
        let beginning = async {
            tokio::select! {
                ended = &mut working => panic!("it ended early: {ended:?}"),
                () = started.notified() => {}
            }
        };
        within(store, ENDED, beginning).await.expect("the job is started");

        store.refuse("victim", ALL, refusal);
        finish.notify_one();
        let early = within(store, REFUSED, &mut working).await;

        store.heal().await;
        let what = format!("always {refusal}");
        match (heals, early) {
            (ByItself, None) => {
                let ended = within(store, ENDED, working).await;
                assert!(matches!(ended, Some(Ok(()))), "{what}, then not: {ended:?}");
                assert_eq!(runs.of("done"), 1, "{what}: runs of the job");
            }
            (ByAPerson, Some(Err(error))) => {
                assert_names(&error, refusal, &what);
                finish.notify_one();
                finish_the_rest(store, &witness, &runs).await;
            }
            (_, early) => panic!("{what}: after {REFUSED:?} it is {early:?}"),
        }
        assert_eq!(witness.figures().await.unfinished(), 0, "{what}");
    }
}
