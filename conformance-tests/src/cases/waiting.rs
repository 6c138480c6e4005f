//! Tests of claims that wait until a job is ready (R14, R21, R24).

use std::time::Duration;

use relq_core::{Delivery, Disposition, NewJob, operator::Selection};
use tokio::time::sleep;

use crate::{
    cases::case,
    harness::{
        checks::{dead, expect_exactly, numbered, payloads, retry_after},
        store::Store,
        times::HELD,
        waiter::{WAIT, Waiter},
    },
};

/// The delay of the delayed jobs in these cases.
const DELAY: Duration = Duration::from_millis(300);

/// By how much a measured time may be too short. Times are cut to milliseconds, and a
/// real clock is read at slightly different moments.
const ROUNDING: Duration = Duration::from_millis(5);

impl Waiter {
    /// Waits for the claim and returns its jobs. Asserts that the claim returns when a
    /// job falls due at the time `due`: neither earlier nor much later.
    async fn woken_when_due(self, store: &Store, due: Duration) -> Vec<Delivery> {
        let delay = due.saturating_sub(store.elapsed());
        let limit = delay + self.lateness + store.response_limit();
        let (taken, _) = store.within(limit, self.claim).await;
        let now = store.elapsed();
        assert!(now + ROUNDING >= due, "woken too early: at {now:?}, due at {due:?}");
        taken.expect("the claim ends")
    }
}

case!(a_push_wakes: R21 => BlockingWait, real_time);
/// A push wakes a waiting claim at once.
async fn a_push_wakes(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    let waiter = Waiter::start(store, &worker, 1).await;

    producer.store_one("job").await;

    assert_eq!(payloads(&waiter.woken(store).await), ["job"]);
}

case!(a_push_beside_a_held_job_wakes: R21 => BlockingWait);
/// A push also wakes a waiting claim while another worker holds a job.
async fn a_push_beside_a_held_job_wakes(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    producer.store_one("held").await;
    worker.take(1).await;
    let waiter = Waiter::start(store, &store.actor("other").await, 1).await;

    producer.store_one("job").await;

    assert_eq!(payloads(&waiter.woken(store).await), ["job"]);
}

case!(a_push_of_any_level_wakes: R15 R21 => Priority BlockingWait);
/// A push of any priority wakes a waiting claim.
async fn a_push_of_any_level_wakes(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    for level in [worker.class().least_urgent(), worker.class().most_urgent()] {
        let waiter = Waiter::start(store, &worker, 1).await;
        producer.store_one(NewJob::new("job").priority(level)).await;
        assert_eq!(waiter.woken(store).await.len(), 1);
    }
}

case!(a_due_job_wakes: R14 => Delay BlockingWait);
/// A job that falls due wakes a waiting claim, even if it was pushed after the claim
/// began to wait.
async fn a_due_job_wakes(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    let waiter = Waiter::start(store, &worker, 1).await;

    let due = store.elapsed() + DELAY;
    producer.store_one(NewJob::new("job").delay(DELAY)).await;

    assert_eq!(payloads(&waiter.woken_when_due(store, due).await), ["job"]);
}

case!(a_due_job_wakes_whichever_claim_is_left: R14 R22 => Delay BlockingWait);
/// Two claims wait, and a delayed job is pushed, of which only one of them may be notified.
/// Either of them is dropped before the job is due, and the other one gets it.
async fn a_due_job_wakes_whichever_claim_is_left(store: &Store) {
    /// The claim must be dropped before the job is due, also on a slow machine.
    const LATER: Duration = Duration::from_secs(2);
    let producer = store.actor("p").await;
    for dropped in [0, 1] {
        let mut waiters = Vec::new();
        for name in ["w1", "w2"] {
            waiters.push(Waiter::start(store, &store.actor(name).await, 1).await);
        }
        let due = store.elapsed() + LATER;
        producer.store_one(NewJob::new("job").delay(LATER)).await;
        store.settled().await;

        waiters.remove(dropped).claim.abort();

        let left = waiters.remove(0);
        assert_eq!(payloads(&left.woken_when_due(store, due).await), ["job"]);
    }
}

case!(a_sooner_due_job_wakes: R14 => Delay BlockingWait, real_time);
/// A claim waits for a delayed job. Then a job that is due sooner is pushed, and wakes
/// the claim when it falls due.
async fn a_sooner_due_job_wakes(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    producer.store_one(NewJob::new("far").delay(HELD)).await;
    let waiter = Waiter::start(store, &worker, 1).await;

    let due = store.elapsed() + DELAY;
    producer.store_one(NewJob::new("near").delay(DELAY)).await;

    assert_eq!(payloads(&waiter.woken_when_due(store, due).await), ["near"]);
}

case!(a_due_retry_wakes: R14 => BlockingWait);
/// A retry that falls due wakes a waiting claim.
async fn a_due_retry_wakes(store: &Store) {
    for (worker, other) in store.pairs().await {
        other.store_one("job").await;
        let held = other.take_one().await;
        let waiter = Waiter::start(store, &worker, 1).await;

        let due = store.elapsed() + DELAY;
        other.say(&held, retry_after(DELAY)).await;

        assert_eq!(payloads(&waiter.woken_when_due(store, due).await), ["job"]);
        worker.purge().await.expect("answered");
    }
}

case!(a_give_back_wakes: R24 => BlockingWait);
/// A job that another worker gives back wakes a waiting claim.
async fn a_give_back_wakes(store: &Store) {
    for (worker, other) in store.pairs().await {
        other.store_one("job").await;
        let held = other.take_one().await;
        let waiter = Waiter::start(store, &worker, 1).await;

        other.say(&held, Disposition::GiveBack).await;

        assert_eq!(payloads(&waiter.woken(store).await), ["job"]);
        worker.purge().await.expect("answered");
    }
}

case!(a_release_wakes: R24 => BlockingWait);
/// The release of another worker wakes a waiting claim.
async fn a_release_wakes(store: &Store) {
    for (worker, other) in store.pairs().await {
        other.store_one("job").await;
        other.take_one().await;
        let waiter = Waiter::start(store, &worker, 1).await;

        other.release_worker(other.worker()).await.expect("answered");

        assert_eq!(payloads(&waiter.woken(store).await), ["job"]);
        worker.purge().await.expect("answered");
    }
}

case!(a_recovery_wakes: R9 => BlockingWait);
/// A job that another client recovers wakes a waiting claim.
async fn a_recovery_wakes(store: &Store) {
    for (worker, other) in store.pairs().await {
        other.store_one("job").await;
        other.take_one_briefly().await;
        let waiter = Waiter::start(store, &worker, 1).await;
        store.outlast_brief_leases().await;

        other.recover_all().await;

        assert_eq!(payloads(&waiter.woken(store).await), ["job"]);
        worker.purge().await.expect("answered");
    }
}

case!(a_redrive_wakes: R21 => BlockingWait);
/// A job that an operator redrives wakes a waiting claim.
async fn a_redrive_wakes(store: &Store) {
    for (worker, operator) in store.pairs().await {
        operator.store_one("job").await;
        let held = operator.take_one().await;
        operator.say(&held, dead("no")).await;
        let waiter = Waiter::start(store, &worker, 1).await;

        operator.redrive(&Selection::All).await.expect("answered");

        assert_eq!(payloads(&waiter.woken(store).await), ["job"]);
        worker.purge().await.expect("answered");
    }
}

case!(a_resume_wakes: R21 => BlockingWait);
/// A resume of a paused queue wakes a waiting claim.
async fn a_resume_wakes(store: &Store) {
    for (worker, operator) in store.pairs().await {
        operator.store_one("job").await;
        operator.pause().await.expect("answered");
        let waiter = Waiter::start(store, &worker, 1).await;
        assert!(!waiter.claim.is_finished(), "nothing is claimed from a paused queue");

        operator.resume().await.expect("answered");

        assert_eq!(payloads(&waiter.woken(store).await), ["job"]);
        worker.purge().await.expect("answered");
    }
}

case!(a_plain_push_wakes: R21 => BlockingWait @ redis, real_time);
/// A plain push wakes a waiting claim. If the subject declares that it does not, the
/// claim finds the job within the declared lateness.
async fn a_plain_push_wakes(store: &Store) {
    let worker = store.actor("w").await;
    let waiter = Waiter::start(store, &worker, 1).await;

    store.push_raw(b"bare").await;

    let taken = if store.plain_pushes_wake() {
        waiter.woken(store).await
    } else {
        waiter.looked_again(store).await
    };
    assert_eq!(payloads(&taken), ["bare"]);
}

case!(one_push_wakes_as_many_as_it_feeds: R21 => BlockingWait);
/// Two jobs in one push wake two claims. No claim stays asleep while a job is
/// ready, whatever its priority.
async fn one_push_wakes_as_many_as_it_feeds(store: &Store) {
    let (first, second) = (store.actor("w1").await, store.actor("w2").await);
    let producer = store.actor("p").await;
    for level in [first.class().least_urgent(), first.class().most_urgent()] {
        let waiters = [
            Waiter::start(store, &first, 1).await,
            Waiter::start(store, &second, 1).await,
        ];

        let jobs = numbered(2).into_iter().map(|one| NewJob::new(one).priority(level));
        producer.store(jobs).await;

        let mut got = Vec::new();
        for waiter in waiters {
            got.extend(payloads(&waiter.woken(store).await));
        }
        expect_exactly(got, numbered(2));
    }
}

case!(the_dropped_take_no_wake_up: R21 R22 => BlockingWait);
/// Two claims wait on a queue, and one of them is dropped. A push of any priority still
/// wakes the other claim.
async fn the_dropped_take_no_wake_up(store: &Store) {
    let (gone, worker) = (store.actor("w1").await, store.actor("w2").await);
    let producer = store.actor("p").await;
    for level in [worker.class().least_urgent(), worker.class().most_urgent()] {
        let dropped = Waiter::start(store, &gone, 1).await;
        let waiter = Waiter::start(store, &worker, 1).await;
        dropped.claim.abort();
        store.settled().await;

        producer.store_one(NewJob::new("job").priority(level)).await;

        assert_eq!(payloads(&waiter.woken(store).await), ["job"]);
    }
}

case!(waiters_may_share_a_connection: R21 => BlockingWait);
/// Claims that wait on one connection are all woken.
async fn waiters_may_share_a_connection(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    let mut waiters = Vec::new();
    for index in 0..8 {
        waiters.push(
            Waiter::start(store, &worker.acting_as(&format!("w{index}")), 1).await,
        );
    }

    for payload in numbered(8) {
        producer.store_one(payload).await;
    }

    let mut got = Vec::new();
    for waiter in waiters {
        got.extend(payloads(&waiter.woken(store).await));
    }
    expect_exactly(got, numbered(8));
}

case!(a_waiting_claim_blocks_no_other_call: R21 => BlockingWait);
/// While a claim waits, other calls on its connection are not delayed.
async fn a_waiting_claim_blocks_no_other_call(store: &Store) {
    let (worker, producer) = (store.actor("w").await, store.actor("p").await);
    let waiter = Waiter::start(store, &worker, 1).await;

    let other_calls = async { (worker.figures().await, worker.recover_all().await) };
    store.within(store.response_limit(), other_calls).await;

    producer.store_one("job").await;
    assert_eq!(payloads(&waiter.woken(store).await), ["job"]);
}

case!(a_wait_ends_empty_in_time: R21, real_time);
/// A waiting claim that gets no job returns empty when its wait has ended.
async fn a_wait_ends_empty_in_time(store: &Store) {
    let actor = store.actor("worker").await;
    let (wait, since) = (Duration::from_millis(600), store.elapsed());

    let taken = actor.take_within(1, wait).await;

    let took = store.elapsed() - since;
    assert_eq!(taken, []);
    assert!(took + ROUNDING >= wait, "gave up after {took:?}");
    assert!(took < wait + store.response_limit(), "took {took:?}");
}

case!(a_wait_of_zero_answers_at_once: R21);
/// A claim with a wait of zero returns at once and does not wait for ever.
async fn a_wait_of_zero_answers_at_once(store: &Store) {
    let actor = store.actor("worker").await;

    let claim = actor.take_waiting(1, Duration::ZERO);

    assert_eq!(store.within(store.response_limit(), claim).await.0, []);
}

case!(the_shortest_wait_ends: R21);
/// A claim whose wait is shorter than a millisecond returns, and does not wait for
/// ever.
async fn the_shortest_wait_ends(store: &Store) {
    let actor = store.actor("worker").await;

    for wait in [Duration::from_nanos(1), Duration::from_micros(999)] {
        let claim = actor.take_waiting(1, wait);
        assert_eq!(store.within(store.response_limit(), claim).await.0, []);
    }
}

case!(a_claim_that_finds_jobs_does_not_wait: R21);
/// A claim that finds jobs does not wait for more.
async fn a_claim_that_finds_jobs_does_not_wait(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(2)).await;

    let claim = actor.take_waiting(10, WAIT);

    assert_eq!(store.within(store.response_limit(), claim).await.0.len(), 2);
}

case!(no_wake_up_is_missed: R21 => BlockingWait, real_time);
/// A worker that waits again and again misses no job.
async fn no_wake_up_is_missed(store: &Store) {
    for (worker, producer) in store.pairs().await {
        let working = async {
            let mut got = Vec::new();
            while got.len() < 200 {
                let claim = worker.take_waiting(1, WAIT);
                let (taken, _) = store.within(store.response_limit(), claim).await;
                for one in &taken {
                    worker.finish(one).await;
                }
                got.extend(payloads(&taken));
            }
            got
        };
        // A push may arrive at any moment, also just while the worker begins to wait.
        let pushing = async {
            for (index, payload) in numbered(200).into_iter().enumerate() {
                producer.store_one(payload).await;
                sleep(Duration::from_micros((index as u64 % 17) * 100)).await;
            }
        };

        let (got, ()) = tokio::join!(working, pushing);

        expect_exactly(got, numbered(200));
    }
}

case!(another_queues_push_is_not_heard: R19);
/// A push to another queue wakes no claim here and delivers no job here.
async fn another_queues_push_is_not_heard(store: &Store) {
    let (worker, other) = (store.actor("w").await, store.actor_on("p", "job").await);
    let wait = Duration::from_millis(600);
    let claim = tokio::spawn(async move { worker.take_waiting(1, wait).await });
    store.settled().await;

    other.store_one("not yours").await;

    let (taken, _) = store.within(wait + store.response_limit(), claim).await;
    assert_eq!(taken.expect("the claim ends"), []);
}
