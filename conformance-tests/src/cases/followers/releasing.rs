//! A follower is ready, or its delay begins, in the step that ends its leader (R30).

use relq_core::{Disposition, NewJob};

use super::fixture::{following, named};
use crate::{
    cases::case,
    harness::{
        checks::id,
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
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
