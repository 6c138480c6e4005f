//! How many and how large the followers of one job may be (R30).

use relq_core::{
    NewJob,
    followers::{CannotFollow, MAX_FOLLOWERS_BYTES},
    outcome::DuplicateOf,
};

use super::fixture::{following, named};
use crate::{
    cases::case,
    harness::{
        checks::{duplicate, id, key},
        store::Store,
    },
};

/// A follower with a payload of that size.
fn of_size(bytes: usize) -> NewJob {
    following("leader", vec![b'x'; bytes])
}

case!(the_followers_of_a_leader_have_a_mebibyte_at_most: R30 R5
    => Followers ClientIds);
/// Followers that are larger together than one claim may be are refused. When one of them
/// is cancelled there is room again. All that were taken are released in one step.
async fn the_followers_of_a_leader_have_a_mebibyte_at_most(store: &Store) {
    let actor = store.actor("worker").await;
    let third = MAX_FOLLOWERS_BYTES / 3 - 10_000;
    actor.store_one(named("leader")).await;
    let stored = actor.store([of_size(third), of_size(third), of_size(third)]).await;
    let (leader, too_many) = (id("leader"), CannotFollow::TooMany);
    actor.assert_cannot_follow(&[of_size(40_000)], &leader, too_many).await;
    actor.cancel(&stored[0]).await.expect("answered");
    let both = [of_size(third), of_size(40_000)];
    actor.assert_cannot_follow(&both, &leader, too_many).await;
    actor.store_one(of_size(third)).await;

    actor.finish(&actor.take_one().await).await;

    assert_eq!(actor.figures().await.ready, 3, "R30: they are released");
}

case!(a_single_follower_may_have_any_size: R30 => Followers ClientIds);
/// The only follower of a leader may be larger than all followers may be together. It is
/// released like any other.
async fn a_single_follower_may_have_any_size(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    actor.store_one(of_size(2 * MAX_FOLLOWERS_BYTES)).await;
    let (leader, too_many) = (id("leader"), CannotFollow::TooMany);
    actor.assert_cannot_follow(&[of_size(1)], &leader, too_many).await;

    actor.finish(&actor.take_one().await).await;

    let follower = actor.take_one().await;
    assert_eq!(follower.payload.len(), 2 * MAX_FOLLOWERS_BYTES, "R2 R30");
}

case!(a_duplicate_takes_no_place_among_the_followers: R30 R16
    => Followers ClientIds Unique);
/// A push that is a duplicate by its unique key takes no place among the followers of the
/// job that it names.
async fn a_duplicate_takes_no_place_among_the_followers(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(named("leader")).await;
    let keyed = |payload| following("leader", payload).unique(key("k"));
    let first = actor.store_one(keyed("first")).await;

    for _ in 0..120 {
        let known = duplicate(&first, DuplicateOf::UniqueKey);
        assert_eq!(actor.offer(keyed("again")).await, known, "R16");
    }

    actor.store((0..99).map(|_| following("leader", "follower"))).await;
    assert_eq!(actor.figures().await.scheduled, 100, "R30");
}
