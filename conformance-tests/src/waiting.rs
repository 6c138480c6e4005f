//! Claims that wait (R14, R21, R24).

use std::time::Duration;

use queue_core::{Delivery, NewJob, Priority, Verdict, Which};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

use crate::{
    checks::{dead, expect_exactly, numbered, payloads, retry_after},
    store::{Actor, HELD, Store},
};

/// Longer than any wake-up takes; a claim that is not woken waits for all of it.
const WAIT: Duration = Duration::from_secs(30);

/// What counts as being woken, on a machine that is busy with other cases.
const WOKEN: Duration = Duration::from_secs(3);

struct Waiter {
    claim: JoinHandle<(Vec<Delivery>, Instant)>,
}

impl Waiter {
    /// A claim that waits, as far as one can tell from outside: a pause lets it fall
    /// asleep. Were it too short, the case would be weaker and not wrong.
    async fn start(actor: &Actor, max: u32) -> Self {
        let actor = actor.clone();
        let claim = tokio::spawn(async move {
            let taken = actor.take_within(max, WAIT).await;
            (taken, Instant::now())
        });
        sleep(Duration::from_millis(150)).await;
        Self { claim }
    }

    /// What it got, no later than soon after `since`.
    async fn woken_after(self, since: Instant) -> Vec<Delivery> {
        let (taken, at) = self.claim.await.expect("the claim ends");
        let took = at.saturating_duration_since(since);
        assert!(took < WOKEN, "woken after {took:?} with {} jobs", taken.len());
        taken
    }
}

/// R21: a push wakes a waiting claim at once.
pub(crate) async fn a_push_wakes(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    let waiter = Waiter::start(&worker, 1).await;

    let since = Instant::now();
    producer.store_one("job").await;

    assert_eq!(payloads(&waiter.woken_after(since).await), ["job"]);
}

/// R15, R21: a push of any urgency wakes.
pub(crate) async fn a_push_of_any_level_wakes(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    for level in [Priority::LOWEST, Priority::HIGHEST] {
        let waiter = Waiter::start(&worker, 1).await;
        let since = Instant::now();
        producer.store_one(NewJob::new("job").priority(level)).await;
        assert_eq!(waiter.woken_after(since).await.len(), 1);
    }
}

/// R14: a job that falls due wakes, though it was pushed while the claim waited.
pub(crate) async fn a_due_job_wakes(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    let waiter = Waiter::start(&worker, 1).await;
    let delay = Duration::from_millis(300);

    let since = Instant::now() + delay + worker.capabilities().lateness;
    producer.store_one(NewJob::new("job").delay(delay)).await;

    assert_eq!(payloads(&waiter.woken_after(since).await), ["job"]);
}

/// R14: a job that falls due sooner than the one waited for wakes too.
pub(crate) async fn a_sooner_due_job_wakes(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    producer.store_one(NewJob::new("far").delay(HELD)).await;
    let waiter = Waiter::start(&worker, 1).await;
    let delay = Duration::from_millis(300);

    let since = Instant::now() + delay + worker.capabilities().lateness;
    producer.store_one(NewJob::new("near").delay(delay)).await;

    assert_eq!(payloads(&waiter.woken_after(since).await), ["near"]);
}

/// R14: a retry that falls due wakes.
pub(crate) async fn a_due_retry_wakes(store: &Store) {
    let (worker, other) = (store.actor("w").await, store.actor("o").await);
    other.store_one("job").await;
    let held = other.take_one().await;
    let waiter = Waiter::start(&worker, 1).await;
    let delay = Duration::from_millis(300);

    let since = Instant::now() + delay + worker.capabilities().lateness;
    other.say(&held, retry_after(delay)).await;

    assert_eq!(payloads(&waiter.woken_after(since).await), ["job"]);
}

/// R24: what another gives back wakes.
pub(crate) async fn a_give_back_wakes(store: &Store) {
    let (worker, other) = (store.actor("w").await, store.actor("o").await);
    other.store_one("job").await;
    let held = other.take_one().await;
    let waiter = Waiter::start(&worker, 1).await;

    let since = Instant::now();
    other.say(&held, Verdict::GiveBack).await;

    assert_eq!(payloads(&waiter.woken_after(since).await), ["job"]);
}

/// R24: what another leaves behind wakes.
pub(crate) async fn a_leave_wakes(store: &Store) {
    let (worker, other) = (store.actor("w").await, store.actor("o").await);
    other.store_one("job").await;
    other.take_one().await;
    let waiter = Waiter::start(&worker, 1).await;

    let since = Instant::now();
    other.leave(other.worker()).await.expect("answered");

    assert_eq!(payloads(&waiter.woken_after(since).await), ["job"]);
}

/// R9: what another recovers wakes.
pub(crate) async fn a_recovery_wakes(store: &Store) {
    let (worker, other) = (store.actor("w").await, store.actor("o").await);
    other.store_one("job").await;
    other.take_one_briefly().await;
    let waiter = Waiter::start(&worker, 1).await;
    store.outlast_brief_leases().await;

    let since = Instant::now();
    other.recover_all().await;

    assert_eq!(payloads(&waiter.woken_after(since).await), ["job"]);
}

/// R21: what an operator redrives wakes.
pub(crate) async fn a_redrive_wakes(store: &Store) {
    let (worker, operator) = (store.actor("w").await, store.actor("o").await);
    operator.store_one("job").await;
    let held = operator.take_one().await;
    operator.say(&held, dead("no")).await;
    let waiter = Waiter::start(&worker, 1).await;

    let since = Instant::now();
    operator.redrive(&Which::All).await.expect("answered");

    assert_eq!(payloads(&waiter.woken_after(since).await), ["job"]);
}

/// R21: the end of a pause wakes.
pub(crate) async fn a_resume_wakes(store: &Store) {
    let (worker, operator) = (store.actor("w").await, store.actor("o").await);
    operator.store_one("job").await;
    operator.pause().await.expect("answered");
    let waiter = Waiter::start(&worker, 1).await;
    assert!(!waiter.claim.is_finished(), "nothing is claimed from a paused queue");

    let since = Instant::now();
    operator.resume().await.expect("answered");

    assert_eq!(payloads(&waiter.woken_after(since).await), ["job"]);
}

/// R21: a plain push wakes.
pub(crate) async fn a_plain_push_wakes(store: &Store) {
    let worker = store.actor("w").await;
    let waiter = Waiter::start(&worker, 1).await;

    let since = Instant::now();
    store.push_raw(b"bare").await;

    assert_eq!(payloads(&waiter.woken_after(since).await), ["bare"]);
}

/// R21: two jobs in one push wake two claims, and none is left asleep beside work.
pub(crate) async fn one_push_wakes_as_many_as_it_feeds(store: &Store) {
    let (first, second) = (store.actor("w1").await, store.actor("w2").await);
    let producer = store.actor("p").await;
    let waiters = [Waiter::start(&first, 1).await, Waiter::start(&second, 1).await];

    let since = Instant::now();
    producer.store(numbered(2)).await;

    let mut got = Vec::new();
    for waiter in waiters {
        got.extend(payloads(&waiter.woken_after(since).await));
    }
    expect_exactly(got, numbered(2));
}

/// R21: claims that wait on one connection are all woken.
pub(crate) async fn waiters_may_share_a_connection(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    let mut waiters = Vec::new();
    for index in 0..8 {
        waiters.push(Waiter::start(&worker.acting_as(&format!("w{index}")), 1).await);
    }

    let since = Instant::now();
    for payload in numbered(8) {
        producer.store_one(payload).await;
    }

    let mut got = Vec::new();
    for waiter in waiters {
        got.extend(payloads(&waiter.woken_after(since).await));
    }
    expect_exactly(got, numbered(8));
}

/// R21: a waiting claim does not hold up other calls of its connection.
pub(crate) async fn a_waiting_claim_blocks_no_other_call(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    let waiter = Waiter::start(&worker, 1).await;

    let since = Instant::now();
    worker.figures().await;
    worker.recover_all().await;
    assert!(since.elapsed() < WOKEN, "calls are answered while a claim waits");

    let since = Instant::now();
    producer.store_one("job").await;
    assert_eq!(payloads(&waiter.woken_after(since).await), ["job"]);
}

/// R21: a claim that gets nothing answers when its time is over.
pub(crate) async fn a_wait_ends_empty_in_time(store: &Store) {
    let actor = store.actor("worker").await;
    let (wait, since) = (Duration::from_millis(600), Instant::now());

    let taken = actor.take_within(1, wait).await;

    let took = since.elapsed();
    assert_eq!(taken, []);
    assert!(took + Duration::from_millis(5) >= wait, "gave up after {took:?}");
    assert!(took < wait + WOKEN, "took {took:?}");
}

/// R21: a wait of nothing answers at once; it does not mean for ever.
pub(crate) async fn a_wait_of_zero_answers_at_once(store: &Store) {
    let actor = store.actor("worker").await;
    let since = Instant::now();

    assert_eq!(actor.take_within(1, Duration::ZERO).await, []);

    assert!(since.elapsed() < WOKEN);
}

/// R21: nor does a wait that rounds down to nothing.
pub(crate) async fn the_shortest_wait_ends(store: &Store) {
    let actor = store.actor("worker").await;
    let since = Instant::now();

    for wait in [Duration::from_nanos(1), Duration::from_micros(999)] {
        assert_eq!(actor.take_within(1, wait).await, []);
    }

    assert!(since.elapsed() < WOKEN);
}

/// R21: a claim that finds jobs does not wait for more.
pub(crate) async fn a_claim_that_finds_jobs_does_not_wait(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(2)).await;
    let since = Instant::now();

    assert_eq!(actor.take_within(10, WAIT).await.len(), 2);

    assert!(since.elapsed() < WOKEN);
}

/// R21: a worker that waits again and again misses nothing.
pub(crate) async fn no_wake_up_is_missed(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    let working = tokio::spawn(async move {
        let mut got = Vec::new();
        while got.len() < 200 {
            let since = Instant::now();
            let taken = worker.take_within(1, WAIT).await;
            assert!(since.elapsed() < WOKEN, "asleep beside {} jobs", got.len());
            for one in &taken {
                worker.finish(one).await;
            }
            got.extend(payloads(&taken));
        }
        got
    });

    for (index, payload) in numbered(200).into_iter().enumerate() {
        producer.store_one(payload).await;
        sleep(Duration::from_micros((index as u64 % 17) * 100)).await;
    }

    expect_exactly(working.await.expect("the worker ends"), numbered(200));
}

/// R19: a push to another queue wakes nobody here, and feeds nobody.
pub(crate) async fn another_queues_push_is_not_heard(store: &Store) {
    let (worker, other) = (store.actor("w").await, store.actor_on("p", "job").await);
    let claim =
        tokio::spawn(
            async move { worker.take_within(1, Duration::from_millis(600)).await },
        );

    other.store_one("not yours").await;

    assert_eq!(claim.await.expect("the claim ends"), []);
}
