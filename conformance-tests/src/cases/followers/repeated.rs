//! Followers and leaders that are pushed again, or whose ids are used again (R30, R4).

use relq_core::{
    NewJob,
    outcome::{DuplicateOf, Pushed},
};

use super::fixture::{following, named};
use crate::{
    cases::case,
    harness::{
        checks::{duplicate, id, key},
        store::Store,
        times::HELD,
    },
};

case!(a_repeated_leader_keeps_its_followers: R30 R4 => Followers ClientIds);
/// A push of a leader whose id is known is a duplicate, and a follower behind it in the
/// same call follows the job that is stored.
async fn a_repeated_leader_keeps_its_followers(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store([named("leader"), following("leader", "1")]).await;

    let again = [named("leader"), following("leader", "2")];
    let pushed = actor.push(&again, None).await.expect("taken");

    assert_eq!(pushed[0], duplicate(&id("leader"), DuplicateOf::Id), "R4");
    assert!(matches!(pushed[1], Pushed::Stored(_)), "R30: {pushed:?}");
    actor.assert_held([("leader", "1"), ("leader", "2")]).await;
    actor.finish(&actor.take_one().await).await;
    assert_eq!(actor.figures().await.ready, 2, "R30");
}

case!(a_repeated_follower_is_a_duplicate_in_each_state: R30 R4 R16
    => Followers ClientIds Unique);
/// A push of a follower whose id or key is in use is a duplicate while it is held, once it
/// is released, and when it is done. The leader that it names is not looked at if its id
/// is known.
async fn a_repeated_follower_is_a_duplicate_in_each_state(store: &Store) {
    let actor = store.actor("worker").await;
    let follower = || following("leader", "follower").id(id("mine")).unique(key("k"));
    actor.store([named("leader"), follower()]).await;
    let known = duplicate(&id("mine"), DuplicateOf::Id);
    assert_eq!(actor.offer(follower()).await, known, "R4: it is held");
    let other = NewJob::new("other").id(id("mine")).after(id("never"));
    assert_eq!(actor.offer(other).await, known, "R4: it is held");
    actor.finish(&actor.take_one().await).await;
    assert_eq!(actor.offer(follower()).await, known, "R4: it is ready");
    let held = actor.take_one().await;
    assert_eq!(actor.offer(follower()).await, known, "R4: it runs");
    let keyed = following("leader", "other").unique(key("k"));
    let by_key = duplicate(&id("mine"), DuplicateOf::UniqueKey);
    assert_eq!(actor.offer(keyed).await, by_key, "R16: it runs");

    actor.finish(&held).await;

    assert_eq!(actor.offer(follower()).await, known, "R4: it is done");
    assert_eq!(actor.figures().await.unfinished(), 0, "R4: nothing is stored");
}

case!(followers_within_one_call_are_told_apart: R30 R4 R16
    => Followers ClientIds Unique);
/// Within one call, a chain is stored in order, and a second job of the same id or key is
/// a duplicate.
async fn followers_within_one_call_are_told_apart(store: &Store) {
    let actor = store.actor("producer").await;
    let second = || following("first", "second").id(id("second"));
    let keyed = |payload| following("second", payload).unique(key("k"));
    let call = [named("first"), second(), second(), keyed("third"), keyed("again")];

    let pushed = actor.push(&call, None).await.expect("taken");

    let third = pushed[3].job();
    assert_eq!(pushed[2], duplicate(&id("second"), DuplicateOf::Id), "R4");
    assert_eq!(pushed[4], duplicate(third, DuplicateOf::UniqueKey), "R16");
    actor.assert_held([("first", "second"), ("second", "third")]).await;
}

case!(an_id_that_is_used_again_has_no_old_followers: R30 R4 => Followers ClientIds);
/// When an id is forgotten and used again, the new job holds its own followers only, and
/// its end says what a push after it finds.
async fn an_id_that_is_used_again_has_no_old_followers(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([named("leader"), following("leader", "old")]).await;
    actor.cancel(&id("leader")).await.expect("answered");
    actor.recover_all().await;
    store.advance(HELD).await;
    actor.recover_all().await;

    actor.store([named("leader"), following("leader", "new")]).await;

    actor.assert_held([("leader", "new")]).await;
    actor.finish(&actor.take_one().await).await;
    actor.assert_served(["new"]).await;
    actor.store_one(following("leader", "late")).await;
    actor.assert_served(["late"]).await;
}

case!(a_follower_with_a_forgotten_id_is_held: R30 R4 => Followers ClientIds);
/// A follower has the id of a job that was done and is forgotten, although no recovery has
/// removed the record of it. It is a new job, and waits for its leader.
async fn a_follower_with_a_forgotten_id_is_held(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("again")).await;
    actor.finish(&actor.take_one().await).await;
    store.advance(HELD).await;

    let follower = following("leader", "follower").id(id("again"));
    actor.store([named("leader"), follower]).await;

    actor.assert_held([("leader", "follower")]).await;
    actor.finish(&actor.take_one().await).await;
    actor.assert_served(["follower"]).await;
}

case!(a_kept_result_keeps_its_job_followable: R30 R29 => Followers Results);
/// A job whose result is kept for longer than ids are remembered can be followed for as
/// long.
async fn a_kept_result_keeps_its_job_followable(store: &Store) {
    let actor = store.actor("worker").await;
    let kept = NewJob::new("leader").keep_result(3 * HELD);
    let leader = actor.store_one(kept).await;
    actor.finish(&actor.take_one().await).await;
    store.advance(2 * HELD).await;
    actor.recover_all().await;

    actor.store_one(following(leader.as_str(), "follower")).await;

    actor.assert_served(["follower"]).await;
    store.advance(2 * HELD).await;
    actor.recover_all().await;
    actor.assert_cannot_follow_unknown(leader.as_str()).await;
}
