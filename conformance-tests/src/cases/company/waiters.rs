//! One to three claims wait while one, two or three jobs become ready. Every way in
//! which a job can become ready is tested.

use std::{thread, time::Duration};

use relq_core::{
    Delivery, Disposition, NewJob, capabilities::Capability, operator::Selection,
};
use tokio::{runtime::Builder, task::JoinSet};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, expect_exactly, numbered, payloads, retry_after, settle_all},
        store::Store,
        times::BRIEF,
        waiter::{WAIT, Waiter},
    },
};

/// The ways in which several jobs can become ready.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Source {
    PushOfAll,
    PushOfEach,
    UrgentPush,
    GiveBack,
    Release,
    Recovery,
    DelayOfAll,
    RetryOfEach,
    Resume,
    Redrive,
}
use Source::{
    DelayOfAll, GiveBack, PushOfAll, PushOfEach, Recovery, Redrive, Release, Resume,
    RetryOfEach, UrgentPush,
};

impl Source {
    const ALL: [Self; 10] = [
        PushOfAll,
        PushOfEach,
        UrgentPush,
        GiveBack,
        Release,
        Recovery,
        DelayOfAll,
        RetryOfEach,
        Resume,
        Redrive,
    ];

    /// Brings the jobs into the state that they need before they can become ready in
    /// this way. Runs before any claim waits. Returns the deliveries that `other` still
    /// holds.
    async fn prepare(self, other: &Actor, count: usize) -> Vec<Delivery> {
        let max = u32::try_from(count).expect("a small number");
        match self {
            PushOfAll | PushOfEach | UrgentPush | DelayOfAll => Vec::new(),
            Resume => {
                other.pause().await.expect("paused");
                other.store(numbered(count)).await;
                Vec::new()
            }
            Recovery => {
                other.store(numbered(count)).await;
                other.take_briefly(max).await
            }
            GiveBack | Release | RetryOfEach | Redrive => {
                other.store(numbered(count)).await;
                let held = other.take(max).await;
                if self == Redrive {
                    settle_all(other, &held, &dead("no")).await;
                }
                held
            }
        }
    }

    /// The jobs that one push stores.
    fn new_jobs(self, other: &Actor, count: usize) -> Vec<NewJob> {
        let job = |payload| match self {
            UrgentPush => NewJob::new(payload).priority(other.class().most_urgent()),
            DelayOfAll => NewJob::new(payload).delay(BRIEF),
            _ => NewJob::new(payload),
        };
        numbered(count).into_iter().map(job).collect()
    }

    /// Makes the jobs ready, or schedules them so that they fall due later.
    async fn arrive(
        self,
        store: &Store,
        other: &Actor,
        held: &[Delivery],
        count: usize,
    ) {
        match self {
            PushOfAll | UrgentPush | DelayOfAll => {
                other.store(self.new_jobs(other, count)).await;
            }
            PushOfEach => {
                for job in numbered(count) {
                    other.store_one(job).await;
                }
            }
            RetryOfEach => {
                for one in held {
                    other.say(one, retry_after(BRIEF)).await;
                }
            }
            GiveBack => {
                settle_all(other, held, &Disposition::GiveBack).await;
            }
            Release => {
                other.release_worker(other.worker()).await.expect("released");
            }
            Recovery => {
                store.outlast_brief_leases().await;
                other.recover_all().await;
            }
            Resume => other.resume().await.expect("resumed"),
            Redrive => {
                other.redrive(&Selection::All).await.expect("redriven");
            }
        }
    }
}

/// Claims that wait for one job each. Every claim has a connection of its own.
struct Waiters(JoinSet<Vec<Delivery>>);

impl Waiters {
    /// Starts one waiting claim for each actor. `actors` must outlive the claims: if a
    /// notification reaches a client whose claim has already ended, that client passes
    /// the notification on to another client.
    async fn start(store: &Store, actors: &[Actor]) -> Self {
        let mut waiters = JoinSet::new();
        for actor in actors {
            let actor = actor.clone();
            waiters.spawn(async move { actor.take_waiting(1, WAIT).await });
            store.settled().await;
        }
        Self(waiters)
    }

    /// Waits until `count` of the claims have ended, and returns their jobs. Panics if
    /// one of them gets no job, or if they have not ended within the limit.
    async fn served(
        &mut self,
        store: &Store,
        count: usize,
        limit: Duration,
        what: &str,
    ) -> Vec<Delivery> {
        let mut got = Vec::new();
        let all = async {
            for _ in 0..count {
                let served = self.0.join_next().await.expect("a claim waits");
                let jobs = served.expect("the claim ends");
                assert_eq!(jobs.len(), 1, "{what}: a claim ended with no job");
                got.extend(jobs);
            }
        };
        let ((), took) = store.within(limit, all).await;
        assert!(took < limit, "{what}: one was not woken, and polled after {took:?}");
        got
    }
}

/// Makes jobs ready while claims wait. Asserts that each job goes to one of the claims,
/// and that the other claims keep waiting.
async fn arrive_for_waiters(store: &Store, source: Source) {
    let other = store.actor("other").await;
    let lateness = other.capabilities().lateness;
    let woken = store.wake_limit(lateness);
    let mut actors = Vec::new();
    for number in 0..3 {
        actors.push(store.actor(&format!("waiter-{number}")).await);
    }
    let limit = match source {
        DelayOfAll | RetryOfEach => BRIEF + lateness + store.response_limit(),
        _ => woken,
    };
    for claims in 2..=actors.len() {
        for jobs in 1..=3 {
            let what = format!("{source:?} of {jobs} jobs for {claims} claims");
            let held = source.prepare(&other, jobs).await;
            let mut waiters = Waiters::start(store, &actors[..claims]).await;

            source.arrive(store, &other, &held, jobs).await;

            let mut got = waiters.served(store, claims.min(jobs), limit, &what).await;
            store.settled().await;
            assert!(
                waiters.0.try_join_next().is_none(),
                "{what}: one ended for nothing"
            );
            let rest = other.take(3).await;
            got.extend(rest);
            expect_exactly(payloads(&got), numbered(jobs));
            settle_all(&other, &got, &Disposition::Done).await;
            let others = claims.saturating_sub(jobs);
            other.store(numbered(others)).await;
            let last = waiters.served(store, others, woken, &what).await;
            settle_all(&other, &last, &Disposition::Done).await;
        }
    }
}

case!(waiters_share_pushed_jobs: R21 => BlockingWait);
/// Several claims wait, and jobs are pushed: by one push, by one push each, or with a
/// high priority. Each job goes to one of the claims.
async fn waiters_share_pushed_jobs(store: &Store) {
    for source in [PushOfAll, PushOfEach, UrgentPush] {
        arrive_for_waiters(store, source).await;
    }
}

case!(waiters_share_returned_jobs: R9 R21 R24 => BlockingWait);
/// Several claims wait, and jobs are given back, released or redriven. Each job goes to
/// one of the claims.
async fn waiters_share_returned_jobs(store: &Store) {
    for source in [GiveBack, Release, Redrive] {
        arrive_for_waiters(store, source).await;
    }
}

case!(waiters_share_recovered_jobs: R9 R21 => BlockingWait JobLease);
/// Several claims wait, and jobs are recovered after their leases expired. Each job
/// goes to one of the claims.
async fn waiters_share_recovered_jobs(store: &Store) {
    arrive_for_waiters(store, Recovery).await;
}

case!(waiters_share_due_jobs: R14 R21 => BlockingWait);
/// Several claims wait, and delayed jobs or retries of failed jobs fall due. Each job
/// goes to one of the claims.
async fn waiters_share_due_jobs(store: &Store) {
    arrive_for_waiters(store, RetryOfEach).await;
    let actor = store.actor("other").await;
    if actor.capabilities().supports(Capability::Delay) {
        arrive_for_waiters(store, DelayOfAll).await;
    }
}

case!(waiters_share_the_jobs_of_a_resumed_queue: R21 => BlockingWait);
/// Several claims wait on a paused queue with ready jobs. When the queue is resumed,
/// each job goes to one of the claims.
async fn waiters_share_the_jobs_of_a_resumed_queue(store: &Store) {
    arrive_for_waiters(store, Resume).await;
}

case!(a_waiter_finds_a_job_of_any_source: R9 R14 R21 R24);
/// A claim waits, and a job becomes ready, in each way. A backend without `BlockingWait`
/// polls, and may look again only when it has noticed a change: every change counts.
async fn a_waiter_finds_a_job_of_any_source(store: &Store) {
    let worker = store.actor("worker").await;
    let has_delay = worker.capabilities().supports(Capability::Delay);
    for source in Source::ALL {
        if source == DelayOfAll && !has_delay {
            continue;
        }
        // Where a worker has one lease for all of its jobs, its leases have one length.
        let other = store.actor("other").await.acting_as(&format!("{source:?}"));
        let held = source.prepare(&other, 1).await;
        let waiter = Waiter::start(store, &worker, 1).await;

        source.arrive(store, &other, &held, 1).await;

        let taken = waiter.looked_again_after(BRIEF, store).await;
        assert_eq!(payloads(&taken), numbered(1), "R21: {source:?}");
        worker.purge().await.expect("answered");
    }
}

case!(a_frozen_waiter_holds_up_no_other: R21 => BlockingWait);
/// Claims of three clients wait, and the runtime of one client stops running. When
/// three jobs arrive, the claims of the two other clients get one each, whichever
/// client is stopped.
async fn a_frozen_waiter_holds_up_no_other(store: &Store) {
    let other = store.actor("other").await;
    for frozen in 0..3 {
        let mut live = Waiters(JoinSet::new());
        let mut stopped = None;
        for number in 0..3 {
            let name = format!("waiter-{number}");
            if number == frozen {
                stopped = Some(thread::scope(|scope| {
                    let begin = scope.spawn(|| wait_and_freeze(store, &name));
                    begin.join().expect("the claim begins to wait")
                }));
                continue;
            }
            let actor = store.actor(&name).await;
            live.0.spawn(async move { actor.take_waiting(1, WAIT).await });
            store.settled().await;
        }

        other.store(numbered(3)).await;

        let what = format!("three jobs, and waiter {frozen} of three is frozen");
        let limit = other.capabilities().lateness + store.response_limit();
        let got = live.served(store, 2, limit, &what).await;
        settle_all(&other, &got, &Disposition::Done).await;
        stopped.expect("one is frozen").shutdown_background();
        other.purge().await.expect("purged");
    }
}

/// Starts a waiting claim on a runtime of its own, and then stops running that runtime.
/// Returns the runtime, so that the claim is not dropped.
fn wait_and_freeze(store: &Store, name: &str) -> tokio::runtime::Runtime {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.expect("the system gives a runtime");
    runtime.block_on(async {
        let actor = store.actor(name).await;
        tokio::spawn(async move { actor.take_waiting(1, WAIT).await });
        store.settled().await;
    });
    runtime
}
