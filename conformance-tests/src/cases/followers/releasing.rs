//! A follower is ready, or its delay begins, in the step that ends its leader (R30).

use relq_core::{
    Disposition, NewJob, Priority,
    outcome::{Pushed, Settled},
};

use super::fixture::{following, named};
use crate::{
    cases::case,
    harness::{
        checks::{id, numbered, payloads},
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
        waiter::Waiter,
    },
};

case!(a_follower_of_a_done_job_is_ready: R30 => Followers ClientIds);
/// A follower is not delivered before its leader is done, and then it is.
async fn a_follower_of_a_done_job_is_ready(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    actor.store_one(following("leader", "follower")).await;
    actor.assert_held([("leader", "follower")]).await;
    let leader = actor.take_one().await;
    assert_eq!(leader.payload, "leader", "R30");
    actor.assert_none_ready("the leader runs").await;

    actor.finish(&leader).await;

    let follower = actor.take_one().await;
    assert_eq!((&follower.payload[..], follower.attempt()), (&b"follower"[..], 1));
    actor.finish(&follower).await;
    actor.assert_none_ready("both are done").await;
    assert_eq!(actor.figures().await.finished, 2, "R23");
}

case!(a_result_releases_a_follower: R30 R29 => Followers Results);
/// A leader whose id relq made is remembered because it keeps its result. Its end with a
/// result releases its follower.
async fn a_result_releases_a_follower(store: &Store) {
    let actor = store.actor("worker").await;
    let kept = NewJob::new("leader").keep_result(HELD);
    let leader = actor.store_one(kept).await;
    actor.store_one(following(leader.as_str(), "follower")).await;
    let held = actor.take_one().await;

    actor.ends(&held, Disposition::DoneWith { result: "result".into() }).await;

    actor.assert_served(["follower"]).await;
}

case!(a_leader_that_shares_its_id_releases_its_followers: R30 R4
    => Followers ClientIds);
/// A client has pushed a job with an id that relq had made for another one, and the backend
/// has stored both. A follower of that id is released at the latest when both are done, also
/// after both were retried.
async fn a_leader_that_shares_its_id_releases_its_followers(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.store_one("first").await;
    let pushed = actor.offer(NewJob::new("second").id(made.clone())).await;
    if matches!(pushed, Pushed::Duplicate { .. }) {
        return;
    }
    actor.store_one(following(made.as_str(), "follower")).await;
    for one in actor.take(2).await {
        actor.ends(&one, Disposition::Retry { after: BRIEF, error: "no".into() }).await;
    }
    store.advance(PAST_BRIEF + actor.capabilities().lateness).await;
    actor.recover_all().await;

    let again = actor.take(2).await;
    actor.finish_all(&again).await;

    actor.assert_served(["follower"]).await;
}

case!(followers_are_ready_in_the_order_of_their_pushes: R30 R13
    => Followers ClientIds Fifo);
/// The end of a leader puts its followers behind the jobs that are ready, in the order in
/// which they were pushed, also in several calls.
async fn followers_are_ready_in_the_order_of_their_pushes(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    let leader = actor.take_one().await;
    actor.store([following("leader", "1"), following("leader", "2")]).await;
    actor.store_one("waits").await;
    actor.store_one(following("leader", "3")).await;

    actor.finish(&leader).await;
    actor.store_one("late").await;

    actor.assert_served(["waits", "1", "2", "3", "late"]).await;
}

case!(a_delay_begins_at_the_end_of_the_leader: R30 R14 => Followers ClientIds Delay);
/// The delay of a follower is counted from the end of its leader, and not from its push.
async fn a_delay_begins_at_the_end_of_the_leader(store: &Store) {
    store.stop_clock();
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    actor.store_one(following("leader", "follower").delay(BRIEF)).await;
    let leader = actor.take_one().await;
    store.advance(PAST_BRIEF).await;
    actor.assert_none_ready("the leader runs").await;

    actor.finish(&leader).await;

    actor.assert_held([("", ""); 0]).await;
    assert_eq!(actor.figures().await.scheduled, 1, "R30: its delay runs");
    actor.assert_none_ready("its delay has just begun").await;
    store.advance(PAST_BRIEF + actor.capabilities().lateness).await;
    actor.recover_all().await;
    actor.assert_served(["follower"]).await;
}

case!(a_released_follower_is_due_behind_its_equals: R30 R13 R14
    => Followers ClientIds Delay Fifo);
/// A follower is scheduled by the end of its leader. Of the jobs that are due at the same
/// time, it comes behind one that was scheduled before, although it was pushed first.
async fn a_released_follower_is_due_behind_its_equals(store: &Store) {
    store.stop_clock();
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    actor.store_one(following("leader", "follower").delay(BRIEF)).await;
    let leader = actor.take_one().await;
    actor.store_one(NewJob::new("before").delay(BRIEF)).await;

    actor.finish(&leader).await;
    actor.store_one(NewJob::new("behind").delay(BRIEF)).await;

    store.advance(PAST_BRIEF + actor.capabilities().lateness).await;
    actor.recover_all().await;
    actor.assert_served(["before", "follower", "behind"]).await;
}

case!(a_chain_is_served_one_by_one: R30 => Followers ClientIds);
/// A follower can be followed. Each is ready when the one before it is done.
async fn a_chain_is_served_one_by_one(store: &Store) {
    let actor = store.actor("worker").await;
    let second = following("first", "second").id(id("second"));
    actor.store([named("first"), second, following("second", "third")]).await;
    actor.assert_held([("first", "second"), ("second", "third")]).await;

    for payload in ["first", "second", "third"] {
        let held = actor.take(2).await;
        let served: Vec<_> = held.iter().map(|one| &one.payload[..]).collect();
        assert_eq!(served, [payload.as_bytes()], "R30");
        actor.finish(&held[0]).await;
    }
    actor.assert_none_ready("all are done").await;
}

case!(a_job_that_is_done_holds_nobody: R30 R4 => Followers ClientIds);
/// A job that is pushed after one that is done already is ready at once.
async fn a_job_that_is_done_holds_nobody(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    actor.finish(&actor.take_one().await).await;

    actor.store_one(following("leader", "follower")).await;

    actor.assert_served(["follower"]).await;
}

case!(a_released_follower_wakes_a_waiting_claim: R30 R21
    => Followers ClientIds BlockingWait, real_time);
/// A claim that waits is woken by the end of a leader, and gets its follower.
async fn a_released_follower_wakes_a_waiting_claim(store: &Store) {
    let (worker, waiter) = (store.actor("worker").await, store.actor("waiter").await);
    worker.store_one(named("leader")).await;
    worker.store_one(following("leader", "follower")).await;
    let leader = worker.take_one().await;
    let waiting = Waiter::start(store, &waiter, 1).await;
    assert!(!waiting.claim.is_finished(), "R30: the leader runs");

    worker.finish(&leader).await;

    assert_eq!(payloads(&waiting.woken(store).await), ["follower"], "R30");
}

case!(released_followers_are_served_by_priority: R30 R15
    => Followers ClientIds Priority Fifo);
/// Among the ready jobs, the followers of one leader are served by their priorities.
async fn released_followers_are_served_by_priority(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    let leader = actor.take_one().await;
    let ranked = |payload: &'static str, priority| {
        actor.class().fit(following("leader", payload).priority(priority))
    };
    actor
        .store([
            ranked("low", Priority::LOWEST),
            ranked("1", Priority::NORMAL),
            ranked("high", Priority::HIGHEST),
            ranked("2", Priority::NORMAL),
        ])
        .await;
    actor.store_one("waits").await;

    actor.finish(&leader).await;

    actor.assert_served(["high", "waits", "1", "2", "low"]).await;
}

case!(a_hundred_followers_are_ready_in_order: R30 R13 => Followers ClientIds Fifo);
/// A leader with as many followers as are allowed releases all of them, in order.
async fn a_hundred_followers_are_ready_in_order(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    let leader = actor.take_one().await;
    for page in numbered(100).chunks(30) {
        actor.store(page.iter().map(|one| following("leader", one.clone()))).await;
    }

    actor.finish(&leader).await;

    actor.assert_served(numbered(100)).await;
}

case!(a_late_ack_releases_the_follower: R30 R7 => Followers ClientIds);
/// An ack that comes after the end of its lease, and before a recovery, may be applied.
/// The follower is ready exactly if it was.
async fn a_late_ack_releases_the_follower(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    actor.store_one(following("leader", "follower")).await;
    let late = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;

    let settled = actor.say(&late, Disposition::Done).await;

    if settled == Settled::LeaseLost {
        actor.recover_all().await;
        actor.assert_held([("leader", "follower")]).await;
        actor.finish(&actor.take_one().await).await;
    }
    actor.assert_served(["follower"]).await;
}

case!(a_second_ack_releases_nothing: R30 R7 => Followers ClientIds);
/// A job that is pushed by the id of a leader that was forgotten has followers of its own.
/// An ack of the old lease releases none of them.
async fn a_second_ack_releases_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    let first = actor.take_one().await;
    actor.finish(&first).await;
    store.advance(HELD).await;
    actor.recover_all().await;
    actor.store([named("leader"), following("leader", "follower")]).await;

    assert_eq!(actor.say(&first, Disposition::Done).await, Settled::LeaseLost, "R7");

    actor.assert_held([("leader", "follower")]).await;
    actor.finish(&actor.take_one().await).await;
    actor.assert_served(["follower"]).await;
}

case!(a_released_follower_is_as_old_as_its_release: R30 R27
    => Followers ClientIds ReadyAge);
/// The oldest ready job counts from the release of the follower, and not from its push.
async fn a_released_follower_is_as_old_as_its_release(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    actor.store_one(following("leader", "follower")).await;
    let leader = actor.take_one().await;
    store.advance(HELD / 2).await;
    assert_eq!(actor.figures().await.oldest_ready_age, None, "R27: none is ready");

    actor.finish(&leader).await;

    let age = actor.figures().await.oldest_ready_age.expect("R27: one is ready");
    assert!(age < HELD / 4, "R27: it is ready since its release: {age:?}");
    store.advance(HELD).await;
    let age = actor.figures().await.oldest_ready_age.expect("R27: one is ready");
    assert!(age >= HELD, "R27: it is ready since its release: {age:?}");
}

case!(an_ended_leader_lets_the_delay_run: R30 R14 => Followers ClientIds Delay);
/// If the leader is done already when a follower is pushed, the follower's delay counts
/// from the push.
async fn an_ended_leader_lets_the_delay_run(store: &Store) {
    store.stop_clock();
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    actor.finish(&actor.take_one().await).await;

    actor.store_one(following("leader", "follower").delay(BRIEF)).await;

    actor.assert_held([("", ""); 0]).await;
    actor.assert_none_ready("its delay has just begun").await;
    store.advance(PAST_BRIEF + actor.capabilities().lateness).await;
    actor.recover_all().await;
    actor.assert_served(["follower"]).await;
}
