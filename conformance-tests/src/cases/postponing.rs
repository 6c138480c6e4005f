//! A postponed job waits for the stated time, and its delivery is not counted (R26).

use std::time::Duration;

use relq_core::{
    Delivery, Disposition, NewJob, Settlement,
    limits::{MAX_DURATION, MAX_TIMESTAMP},
    operator::{Cancelled, JobState, JobView, StateDetail},
    outcome::Settled,
};

use crate::{
    cases::{
        case,
        unique::{bound, is_free, is_held},
    },
    harness::{
        actor::Actor,
        checks::{
            attempts, dead, delivers, id, key, listed, payloads, postpone, reason,
            retry_after, retry_now,
        },
        store::Store,
        times::{BRIEF, HELD, LIFE, PAST_BRIEF, PAST_LIFE},
    },
};

/// Postpones a job, and asserts that the postponement is applied.
async fn postpone_one(actor: &Actor, held: &Delivery, after: Duration) {
    let settled = actor.say(held, postpone(after)).await;
    assert_eq!(settled, Settled::Applied, "R26: {} is postponed", held.job());
}

/// Postpones a job briefly, and claims it again when it is due.
async fn take_postponed(store: &Store, actor: &Actor, held: &Delivery) -> Delivery {
    postpone_one(actor, held, BRIEF).await;
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    actor.take_one().await
}

async fn the_scheduled_one(actor: &Actor) -> JobView {
    let mut scheduled = actor.list(JobState::Scheduled, 10).await;
    assert_eq!(scheduled.len(), 1, "R26: one job is scheduled: {scheduled:?}");
    scheduled.remove(0)
}

case!(a_postponed_job_is_not_early: R14 R26);
/// A postponed job is scheduled and does not come early. The stats show it and when it
/// is due.
async fn a_postponed_job_is_not_early(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;

    postpone_one(&actor, &held, HELD).await;

    actor.recover_all().await;
    assert_eq!(actor.take(1).await, []);
    let stats = actor.figures().await;
    assert_eq!((stats.scheduled, stats.ready, stats.leased), (1, 0, 0));
    let next = stats.next_due_in.expect("one is scheduled");
    assert!(next <= HELD && next > HELD / 2, "{next:?}");
}

case!(a_postponed_job_comes_in_time: R14 R26);
/// A postponed job is delivered when its time has passed.
async fn a_postponed_job_comes_in_time(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;

    let again = take_postponed(store, &actor, &held).await;

    assert_eq!((again.attempt(), again.job()), (1, held.job()));
    actor.finish(&again).await;
}

case!(a_job_postponed_for_no_time_is_ready: R14 R26);
/// A job that is postponed for no time is ready, and can be claimed at once, without a
/// recovery.
async fn a_job_postponed_for_no_time_is_ready(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    postpone_one(&actor, &held, Duration::ZERO).await;
    let stats = actor.figures().await;
    assert_eq!((stats.ready, stats.scheduled), (1, 0), "R26: it is ready");

    let again = actor.take_within(1, Duration::from_secs(5)).await;

    assert_eq!(payloads(&again), ["job"]);
    assert_eq!(again[0].attempt(), 1);
}

case!(the_last_attempt_can_be_postponed: R11 R26);
/// A job with a single attempt is postponed five times and is never buried for it. Then
/// its only attempt fails, and it is buried.
async fn the_last_attempt_can_be_postponed(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").max_attempts(attempts(1))).await;
    let mut held = actor.take_one().await;
    for _ in 0..5 {
        held = take_postponed(store, &actor, &held).await;
        assert_eq!(held.attempt(), 1, "R26: not counted");
    }
    assert_eq!(actor.figures().await.dead, 0);

    actor.say(&held, retry_now()).await;

    let buried = actor.the_dead_one().await;
    assert_eq!((buried.attempt, buried.last_error.as_deref()), (1, Some("it failed")));
}

case!(a_postponed_job_keeps_its_error: R11 R26);
/// A job fails and is then postponed. The failed attempt stays counted, and the job
/// keeps the error of that attempt.
async fn a_postponed_job_keeps_its_error(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let first = actor.take_one().await;
    actor.say(&first, retry_now()).await;
    actor.recover_all().await;
    let second = actor.take_one().await;
    assert_eq!(second.attempt(), 2);

    postpone_one(&actor, &second, HELD).await;

    let waiting = the_scheduled_one(&actor).await;
    assert_eq!(waiting.attempt, 1, "R26: only the failed attempt is counted");
    assert_eq!(waiting.last_error.as_deref(), Some("it failed"));
}

case!(a_postponement_is_no_failure: R26);
/// A postponed job that has never failed has no last error.
async fn a_postponement_is_no_failure(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;

    postpone_one(&actor, &held, HELD).await;

    let waiting = the_scheduled_one(&actor).await;
    assert_eq!((waiting.attempt, waiting.last_error), (0, None));
}

case!(a_postponed_job_keeps_its_options: R2 R15 R26);
/// A postponed job keeps its id, payload, headers, priority, unique key, expiry, number
/// of attempts and length of its lease.
async fn a_postponed_job_keeps_its_options(store: &Store) {
    let actor = store.actor("worker").await;
    let level = actor.class().most_urgent();
    let job = NewJob::new("job").id(id("mine")).unique(key("k")).priority(level);
    let job = job.expires_in(HELD * 2).max_attempts(attempts(3)).lease(HELD * 2);
    actor.store_one(actor.class().fit(job.header("name", "value"))).await;
    let held = actor.take_one().await;
    let before = actor.list(JobState::Leased, 10).await.remove(0);

    let mut again = take_postponed(store, &actor, &held).await;

    let mut after = actor.list(JobState::Leased, 10).await.remove(0);
    // Only the lease is another one.
    after.detail.clone_from(&before.detail);
    again.receipt.clone_from(&held.receipt);
    assert_eq!((after, again), (before, held));
}

case!(a_postponed_job_holds_its_key: R16 R26 => Unique);
/// A postponed job holds its unique key while it waits and on its next delivery, and the
/// ack of that delivery frees the key.
async fn a_postponed_job_holds_its_key(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first")).await;
    let held = actor.take_one().await;
    postpone_one(&actor, &held, BRIEF).await;
    is_held(&actor).await;
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    let again = actor.take_one().await;
    is_held(&actor).await;

    actor.finish(&again).await;

    is_free(&actor).await;
}

case!(a_postponed_job_expires: R17 R26 => Expiry);
/// A job that is postponed after its expiry is not delivered again. It is buried, and
/// no attempt is counted.
async fn a_postponed_job_expires(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(NewJob::new("job").expires_in(LIFE)).await;
    let held = actor.take_one().await;
    store.advance(PAST_LIFE).await;
    postpone_one(&actor, &held, Duration::ZERO).await;

    actor.recover_all().await;

    assert_eq!(actor.take(1).await, []);
    let buried = actor.the_dead_one().await;
    assert!(reason(&buried).contains("expired"), "{}", reason(&buried));
    assert_eq!((buried.attempt, buried.last_error), (0, None));
}

case!(the_key_of_a_postponed_job_expires: R16 R17 R26 => Unique Expiry);
/// A postponed job that expires while it waits is treated as gone by a push with its
/// unique key.
async fn the_key_of_a_postponed_job_expires(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(bound("first").expires_in(LIFE)).await;
    let held = actor.take_one().await;
    postpone_one(&actor, &held, HELD).await;
    is_held(&actor).await;

    store.advance(PAST_LIFE).await;

    is_free(&actor).await;
}

case!(a_lost_lease_postpones_nothing: R7 R26);
/// A postponement by a lost lease returns `LeaseLost`. The job stays leased to its new
/// holder, and both attempts stay counted.
async fn a_lost_lease_postpones_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let lost = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    let held = actor.take_one().await;

    let settled = actor.say(&lost, postpone(Duration::ZERO)).await;

    assert_eq!(settled, Settled::LeaseLost);
    let leased = actor.list(JobState::Leased, 10).await;
    assert_eq!((leased.len(), leased[0].attempt), (1, 2));
    assert_eq!(actor.figures().await.scheduled, 0);
    actor.finish(&held).await;
}

case!(a_postponed_job_has_no_holder: R7 R9 R24 R26);
/// When a job is postponed, its worker does not hold it any longer: neither the release
/// of the worker nor a recovery after the end of the lease makes the job ready.
async fn a_postponed_job_has_no_holder(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one_briefly().await;
    postpone_one(&actor, &held, HELD).await;

    let released = actor.release_worker(actor.worker()).await.expect("answered");
    store.outlast_brief_leases().await;
    let recovered = actor.recover_all().await;

    assert_eq!((released.jobs, recovered.requeued, recovered.buried), (0, 0, 0));
    assert_eq!(actor.say(&held, Disposition::Done).await, Settled::LeaseLost);
    let waiting = the_scheduled_one(&actor).await;
    assert_eq!((waiting.attempt, waiting.last_error), (0, None));
}

case!(each_job_of_a_call_gets_its_own_settlement: R7 R26);
/// One call ends, retries, buries, discards, gives back and postpones jobs, and one of
/// its leases is lost. Each job gets its own disposition.
async fn each_job_of_a_call_gets_its_own_settlement(store: &Store) {
    let actor = store.actor("worker").await;
    let all = [
        ("done", Disposition::Done),
        ("postponed", postpone(HELD)),
        ("retried", retry_after(HELD)),
        ("lost", postpone(HELD)),
        ("dead", dead("no")),
        ("postponed too", postpone(HELD)),
        ("discarded", Disposition::Discard),
        ("back", Disposition::GiveBack),
    ];
    actor.store(all.iter().map(|(payload, _)| *payload)).await;
    let held = actor.take(8).await;
    let of = |payload: &str| held.iter().find(|one| one.payload == payload.as_bytes());
    let receipt = |payload| of(payload).expect("all are claimed").receipt.clone();
    actor.finish(of("lost").expect("all are claimed")).await;
    let done =
        all.clone().map(|(payload, said)| Settlement::new(receipt(payload), said));

    let settled = actor.settle(&done).await.expect("answered");

    let expected = all.map(|(payload, _)| match payload {
        "lost" => Settled::LeaseLost,
        _ => Settled::Applied,
    });
    assert_eq!(settled, expected);
    let mut scheduled: Vec<_> = actor.list(JobState::Scheduled, 10).await;
    scheduled.sort_by(|one, other| one.payload.cmp(&other.payload));
    assert_eq!(listed(&scheduled), ["postponed", "postponed too", "retried"]);
    assert!(scheduled.iter().map(|one| one.attempt).eq([0, 0, 1]), "{scheduled:?}");
    assert_eq!(listed(&[actor.the_dead_one().await]), ["dead"]);
    let stats = actor.figures().await;
    assert_eq!((stats.finished, stats.discarded), (2, 1));
    delivers(&actor, ["back"]).await;
}

case!(a_postponed_job_can_be_cancelled: R23 R26);
/// An operator can cancel a postponed job while it waits. The job is then gone.
async fn a_postponed_job_can_be_cancelled(store: &Store) {
    let actor = store.actor("worker").await;
    let job = actor.store_one("job").await;
    let held = actor.take_one().await;
    postpone_one(&actor, &held, BRIEF).await;

    let cancelled = actor.cancel(&job).await.expect("answered");

    assert_eq!(cancelled, Cancelled::Removed(JobState::Scheduled));
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    assert_eq!(actor.take(1).await, []);
    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.cancelled), (0, 1));
}

case!(a_claim_beside_a_postponement_finds_the_job: R26);
/// `settle_and_claim` postpones a job for no time, and claims after that: the claim
/// returns the job.
async fn a_claim_beside_a_postponement_finds_the_job(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    let later = [Settlement::new(held.receipt.clone(), postpone(Duration::ZERO))];

    let both = actor.settle_and_claim(&later, &actor.ask(1)).await;

    assert_eq!(both.settled.expect("answered"), [Settled::Applied]);
    let claimed = both.claimed.expect("answered");
    assert_eq!(payloads(&claimed), ["job"]);
    assert_eq!(claimed[0].attempt(), 1);
}

case!(an_endless_postponement_loses_nothing: R21 R26);
/// A postponement for an infinite time never makes the job ready at once and never
/// loses it. The backend either refuses it and leaves the job leased, or uses the
/// longest allowed time.
async fn an_endless_postponement_loses_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let too_long = MAX_DURATION + Duration::from_millis(1);
    for after in [MAX_DURATION, too_long, Duration::MAX] {
        actor.store_one("job").await;
        let held = actor.take_one().await;
        let later = [Settlement::new(held.receipt, postpone(after))];
        let _either = actor.settle(&later).await;
    }

    actor.recover_all().await;

    let stats = actor.figures().await;
    assert_eq!((stats.ready, stats.leased + stats.scheduled), (0, 3));
    for view in actor.list(JobState::Scheduled, 10).await {
        let StateDetail::Scheduled { due } = view.detail else { panic!("{view:?}") };
        assert!(due <= MAX_TIMESTAMP, "it cannot be restored elsewhere: {due:?}");
    }
}
