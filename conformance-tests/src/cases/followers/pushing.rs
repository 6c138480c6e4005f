//! Which jobs can be followed, and what a push says of the others (R30, R4, R5).

use relq_core::{
    Disposition, Error, NewJob,
    followers::{CannotFollow, MAX_FOLLOWERS},
    operator::Selection,
    outcome::DuplicateOf,
};

use super::fixture::{following, named};
use crate::{
    cases::case,
    harness::{
        checks::{dead, duplicate, id, key, numbered, token},
        store::Store,
    },
};

case!(a_job_that_is_not_remembered_cannot_be_followed: R30 R5 => Followers ClientIds);
/// A push after an id that never was, or of a job whose id is not remembered, is refused
/// with all of its jobs.
async fn a_job_that_is_not_remembered_cannot_be_followed(store: &Store) {
    let actor = store.actor("producer").await;
    let plain = actor.store_one("plain").await;

    for leader in [&id("never"), &plain] {
        let jobs = ["other".into(), NewJob::new("follower").after(leader.clone())];
        actor.assert_cannot_follow(&jobs, leader, CannotFollow::Unknown).await;
    }
}

case!(a_job_that_was_not_done_cannot_be_followed: R30 R5 => Followers ClientIds);
/// A push after a job that was cancelled, discarded, or purged from the dead is refused.
async fn a_job_that_was_not_done_cannot_be_followed(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("cancelled")).await;
    actor.cancel(&id("cancelled")).await.expect("answered");
    actor.store_one(named("discarded")).await;
    actor.ends(&actor.take_one().await, Disposition::Discard).await;
    actor.store_one(named("purged")).await;
    actor.ends(&actor.take_one().await, dead("no")).await;
    actor.purge_dead(&Selection::All).await.expect("answered");

    for leader in ["cancelled", "discarded", "purged"] {
        let jobs = ["other".into(), following(leader, "follower")];
        actor.assert_cannot_follow(&jobs, &id(leader), CannotFollow::NotDone).await;
    }
}

case!(a_repeated_push_of_a_follower_is_answered_as_before: R30 R4
    => Followers ClientIds PushTokens);
/// A push of a follower can be repeated although its leader has ended meanwhile.
async fn a_repeated_push_of_a_follower_is_answered_as_before(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(named("leader")).await;
    let (by_id, by_token) = (
        following("leader", "by id").id(id("mine")),
        [following("leader", "by token")],
    );
    actor.store_one(by_id.clone()).await;
    let first = actor.push(&by_token, Some(&token("call"))).await.expect("taken");
    actor.cancel(&id("leader")).await.expect("answered");
    actor.recover_all().await;

    let again = actor.push(&by_token, Some(&token("call"))).await.expect("R4");

    assert_eq!(again, first, "R4");
    let known = duplicate(&id("mine"), DuplicateOf::Id);
    assert_eq!(actor.offer(by_id).await, known, "R4");
    assert_eq!(actor.figures().await.unfinished(), 0, "R4: nothing is stored");
}

case!(a_leader_of_the_same_call_stands_before_its_follower: R30 R5
    => Followers ClientIds Unique);
/// A job can follow one that stands before it in the same call, but not one that comes
/// later, nor itself, nor one with a unique key.
async fn a_leader_of_the_same_call_stands_before_its_follower(store: &Store) {
    let actor = store.actor("producer").await;
    let jobs = || [named("leader"), following("leader", "follower")];
    let mut turned = jobs();
    turned.reverse();
    let leader = id("leader");
    actor.assert_cannot_follow(&turned, &leader, CannotFollow::Unknown).await;
    let [leader, follower] = jobs();
    for call in [
        &[named("itself").after(id("itself"))][..],
        &[leader.unique(key("k")), follower],
    ] {
        let refused = actor.push(call, None).await;
        assert!(matches!(refused, Err(Error::Invalid { .. })), "R30: {refused:?}");
    }
    assert_eq!(actor.figures().await.unfinished(), 0, "R5: nothing is stored");

    actor.store(jobs()).await;

    actor.assert_held([("leader", "follower")]).await;
}

case!(a_leader_has_a_hundred_followers_at_most: R30 R5 => Followers ClientIds);
/// The push of one follower too many is refused. When a follower is cancelled, there is
/// room for another.
async fn a_leader_has_a_hundred_followers_at_most(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store_one(named("leader")).await;
    let followers = numbered(MAX_FOLLOWERS).into_iter();
    let mut followers = followers.map(|payload| following("leader", payload));
    let first = actor.store(followers.by_ref().take(MAX_FOLLOWERS - 1)).await;
    let (last, next) =
        (followers.next().expect("one more"), following("leader", "next"));
    let (leader, too_many) = (id("leader"), CannotFollow::TooMany);
    let both = [last.clone(), next.clone()];
    actor.assert_cannot_follow(&both, &leader, too_many).await;
    actor.store_one(last).await;
    actor.assert_cannot_follow(std::slice::from_ref(&next), &leader, too_many).await;

    actor.cancel(&first[0]).await.expect("answered");

    actor.store_one(next).await;
}
