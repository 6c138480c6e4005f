//! Tests of waits that lease nothing (`wait_for_jobs`), as a worker on several queues makes
//! them: it claims without a wait, and waits when it has found nothing (R21, R22).

use std::time::Duration;

use relq_core::{Disposition, NewJob};

use crate::{
    cases::case,
    harness::{
        checks::{expect_exactly, numbered, payloads, retry_after},
        store::Store,
        times::HELD,
        waiter::{WAIT, Waiter},
    },
};

/// The delay of the delayed jobs in these cases.
const DELAY: Duration = Duration::from_millis(300);

/// For how long no job comes to a caller that waits again and again.
const IDLE: Duration = Duration::from_secs(3);

/// How many waits may return in vain within [`IDLE`], beside those of a backend that looks
/// again after its [`lateness`](relq_core::capabilities::Capabilities::lateness).
const RETURNS: u128 = 20;

/// After how many milliseconds a backend without lateness looks again.
const PAUSE_WITHOUT_LATENESS: u128 = 100;

case!(a_push_wakes: R21 => BlockingWait, real_time);
/// A push of any priority ends the wait.
async fn a_push_wakes(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    for level in [worker.class().least_urgent(), worker.class().most_urgent()] {
        let waiter = Waiter::start_without_claim(store, &worker, 1).await;

        producer.store_one(NewJob::new("job").priority(level)).await;

        assert_eq!(payloads(&waiter.woken(store).await), ["job"]);
    }
}

case!(a_due_job_wakes: R14 => Delay BlockingWait);
/// A job that falls due ends the wait, whether it was pushed before or after the wait began.
async fn a_due_job_wakes(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    producer.store_one(NewJob::new("before").delay(DELAY)).await;
    let waiter = Waiter::start_without_claim(store, &worker, 1).await;
    assert_eq!(payloads(&waiter.looked_again_after(DELAY, store).await), ["before"]);

    let waiter = Waiter::start_without_claim(store, &worker, 1).await;
    producer.store_one(NewJob::new("after").delay(DELAY)).await;
    assert_eq!(payloads(&waiter.looked_again_after(DELAY, store).await), ["after"]);
}

case!(a_wait_counts_from_the_claim_before: R14 => Delay BlockingWait);
/// A job that falls due between a claim and the wait ends the wait.
async fn a_wait_counts_from_the_claim_before(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    producer.store_one(NewJob::new("job").delay(HELD)).await;
    assert_eq!(worker.take(1).await, []);
    let lateness = worker.capabilities().lateness;
    store.advance(HELD + lateness).await;

    let waiting = worker.clone();
    let wait = tokio::spawn(async move { waiting.wait_for_jobs(WAIT).await });
    let (ended, _) = store.within(store.wake_limit(lateness), wait).await;

    ended.expect("the wait ends").expect("the wait succeeds");
    assert_eq!(payloads(&worker.take(1).await), ["job"]);
}

case!(what_comes_back_wakes: R9 R14 R24 => BlockingWait);
/// A job ends the wait that another worker gives back or retries later, that is released
/// with its worker, or that is recovered.
async fn what_comes_back_wakes(store: &Store) {
    for (worker, other) in store.pairs().await {
        for payload in ["given back", "retried", "released", "recovered"] {
            other.store_one(payload).await;
            let held = match payload {
                "recovered" => other.take_one_briefly().await,
                _ => other.take_one().await,
            };
            let waiter = Waiter::start_without_claim(store, &worker, 1).await;

            match payload {
                "given back" => {
                    other.say(&held, Disposition::GiveBack).await;
                }
                "retried" => {
                    other.say(&held, retry_after(DELAY)).await;
                }
                "released" => {
                    other.release_worker(other.worker()).await.expect("answered");
                }
                _ => {
                    store.outlast_brief_leases().await;
                    other.recover_all().await;
                }
            }

            let taken = match payload {
                "retried" => waiter.looked_again_after(DELAY, store).await,
                _ => waiter.woken(store).await,
            };
            assert_eq!(payloads(&taken), [payload]);
            worker.finish(&taken[0]).await;
        }
        worker.purge().await.expect("answered");
    }
}

case!(a_resume_wakes: R21 => BlockingWait);
/// A resume of a paused queue ends the wait, and a push to the paused queue does not lead to
/// a claim.
async fn a_resume_wakes(store: &Store) {
    for (worker, operator) in store.pairs().await {
        operator.pause().await.expect("answered");
        let waiter = Waiter::start_without_claim(store, &worker, 1).await;
        operator.store_one("job").await;
        store.settled().await;
        assert!(!waiter.claim.is_finished(), "nothing is claimed from a paused queue");

        operator.resume().await.expect("answered");

        assert_eq!(payloads(&waiter.woken(store).await), ["job"]);
        worker.purge().await.expect("answered");
    }
}

case!(one_push_wakes_as_many_as_it_feeds: R21 => BlockingWait);
/// Three jobs in one push wake all three callers that wait: two without a claim, and one
/// with a claim.
async fn one_push_wakes_as_many_as_it_feeds(store: &Store) {
    let mut waiters = Vec::new();
    for name in ["w1", "w2"] {
        let worker = store.actor(name).await;
        waiters.push(Waiter::start_without_claim(store, &worker, 1).await);
    }
    waiters.push(Waiter::start(store, &store.actor("w3").await, 1).await);

    store.actor("p").await.store(numbered(3)).await;

    let mut got = Vec::new();
    for waiter in waiters {
        got.extend(payloads(&waiter.woken(store).await));
    }
    expect_exactly(got, numbered(3));
}

case!(a_dropped_wait_changes_nothing: R22 => BlockingWait);
/// A wait that is dropped takes no wake-up from other callers, and no job: one that is
/// pushed later is delivered at once, for the first time.
async fn a_dropped_wait_changes_nothing(store: &Store) {
    let (gone, worker) = (store.actor("w1").await, store.actor("w2").await);
    let producer = store.actor("p").await;
    let dropped = Waiter::start_without_claim(store, &gone, 1).await;
    let waiter = Waiter::start(store, &worker, 1).await;
    dropped.claim.abort();
    store.settled().await;

    producer.store_one("first").await;
    assert_eq!(payloads(&waiter.woken(store).await), ["first"]);

    let dropped = Waiter::start_without_claim(store, &gone, 1).await;
    dropped.claim.abort();
    store.settled().await;
    producer.store_one("second").await;
    // A claim that the wait had left behind would take the job now.
    store.settled().await;
    let taken = worker.take_one().await;
    assert_eq!((&taken.payload[..], taken.attempt()), (&b"second"[..], 1));
}

case!(it_leases_nothing: R6 => BlockingWait);
/// A wait that a push has ended leaves the job ready.
async fn it_leases_nothing(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    assert_eq!(worker.take(1).await, []);
    let waiting = worker.clone();
    let wait = tokio::spawn(async move { waiting.wait_for_jobs(WAIT).await });
    store.settled().await;

    producer.store_one("job").await;
    let (ended, _) = store.within(store.response_limit(), wait).await;

    ended.expect("the wait ends").expect("the wait succeeds");
    let stats = producer.figures().await;
    assert_eq!((stats.ready, stats.leased), (1, 0));
    assert_eq!(producer.take_one().await.attempt(), 1);
}

case!(any_limit_is_kept: R21);
/// A wait returns after its limit at the latest, however short it is. A wait without an end
/// is ended by a push.
async fn any_limit_is_kept(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    assert_eq!(worker.take(1).await, []);
    for limit in [Duration::ZERO, Duration::from_nanos(1), Duration::from_millis(600)] {
        let (ended, took) = store
            .within(limit + store.response_limit(), worker.wait_for_jobs(limit))
            .await;
        ended.expect("the wait succeeds");
        assert!(
            took < limit + store.response_limit(),
            "a wait of {limit:?} took {took:?}"
        );
    }

    let waiting = worker.clone();
    let wait = tokio::spawn(async move { waiting.wait_for_jobs(Duration::MAX).await });
    store.settled().await;
    producer.store_one("job").await;
    let limit = worker.capabilities().lateness + store.response_limit();
    let (ended, _) = store.within(limit, wait).await;
    ended.expect("the wait ends").expect("the wait succeeds");
}

case!(an_idle_wait_lasts: R21);
/// While no job comes, a wait seldom returns: a caller that claims after each would
/// otherwise keep the store busy.
async fn an_idle_wait_lasts(store: &Store) {
    let worker = store.actor("w").await;
    let lateness = worker.capabilities().lateness;
    let pause = match lateness.is_zero() {
        true => PAUSE_WITHOUT_LATENESS,
        false => lateness.as_millis().max(1),
    };
    let most = RETURNS + 2 * IDLE.as_millis() / pause;
    let idle = async {
        let (mut returns, since) = (0, store.elapsed());
        let left = || IDLE.saturating_sub(store.elapsed() - since);
        while !left().is_zero() {
            assert_eq!(worker.take(1).await, []);
            worker.wait_for_jobs(left()).await.expect("the wait succeeds");
            returns += 1;
            assert!(returns <= most, "R21: more than {most} waits ended in vain");
        }
    };

    store.within(IDLE + store.response_limit(), idle).await;
}
