//! Many followers whose leaders end without being done: all are cancelled, in bounded
//! steps (R30).

use relq_core::{JobId, NewJob, operator::Cancelled};

use super::fixture::{following, named};
use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{id, numbered},
        store::Store,
    },
};

/// A job with the id `id`, which is its payload as well.
fn job(id: &JobId) -> NewJob {
    NewJob::new(id.as_str().to_owned()).id(id.clone())
}

/// The id of the job with that number.
fn numbered_id(number: usize) -> JobId {
    id(&format!("job-{number}"))
}

/// The jobs 0, 1 and so on. Each follows the one that `leader` names, and the first none.
fn tree(count: usize, leader: impl Fn(usize) -> usize) -> Vec<NewJob> {
    let first = job(&numbered_id(0));
    let followers = (1..count).map(|number| {
        let leader = numbered_id(leader(number));
        job(&numbered_id(number)).after(leader)
    });
    std::iter::once(first).chain(followers).collect()
}

/// Pushes jobs by as many calls as they need.
async fn store_all(actor: &Actor, jobs: &[NewJob]) {
    for page in jobs.chunks(1000) {
        actor.store(page.iter().cloned()).await;
    }
}

/// Cancels the first job, and asserts that no other one is delivered, and that a recovery
/// cancels what is left.
async fn assert_all_cancelled(actor: &Actor, count: u64) {
    actor.cancel(&numbered_id(0)).await.expect("answered");
    assert_eq!(actor.take(1).await, [], "R30: no follower is delivered");

    actor.recover_all().await;

    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.cancelled), (0, count), "R30 R23");
    assert_eq!(actor.take(1).await, [], "R30: no follower is delivered");
}

case!(a_long_chain_is_cancelled: R30 => Followers ClientIds);
/// The cancellation of the first of 1000 jobs of which each follows the one before
/// cancels all of them, at the latest by a recovery.
async fn a_long_chain_is_cancelled(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store(tree(1000, |number| number - 1)).await;
    assert_eq!(actor.figures().await.scheduled, 999, "R30");

    assert_all_cancelled(&actor, 1000).await;
}

case!(a_wide_tree_is_cancelled: R30 => Followers ClientIds);
/// So are the followers of a job with ten followers, each of which has ten, each of which
/// has ten.
async fn a_wide_tree_is_cancelled(store: &Store) {
    let actor = store.actor("operator").await;
    store_all(&actor, &tree(1111, |number| (number - 1) / 10)).await;

    assert_all_cancelled(&actor, 1111).await;
}

case!(a_chain_is_cancelled_in_steps_of_a_few_jobs: R30 => Followers ClientIds);
/// So is a chain if a step of the backend handles a few jobs.
async fn a_chain_is_cancelled_in_steps_of_a_few_jobs(store: &Store) {
    let actor = store.actor_in_steps("operator").await;
    actor.store(tree(60, |number| number - 1)).await;

    assert_all_cancelled(&actor, 60).await;
}

case!(an_orphan_can_be_cancelled_or_followed: R30 => Followers ClientIds);
/// Between the end of a leader and the recovery that cancels its followers, a follower
/// can be cancelled, and a job can be pushed after it if it is still there. All are
/// cancelled in the end.
async fn an_orphan_can_be_cancelled_or_followed(store: &Store) {
    let actor = store.actor("operator").await;
    actor.store(tree(1000, |number| number - 1)).await;
    actor.cancel(&numbered_id(0)).await.expect("answered");

    let last = numbered_id(999);
    let pushed = actor.push(&[following(last.as_str(), "late")], None).await;
    let before = actor.cancel(&numbered_id(998)).await.expect("answered");
    actor.recover_all().await;

    let cancelled = 1000 + u64::from(pushed.is_ok());
    let stats = actor.figures().await;
    let counted = (stats.unfinished(), stats.cancelled);
    assert_eq!(counted, (0, cancelled), "R30 R23: {pushed:?}, {before:?}");
    let again = actor.cancel(&last).await.expect("answered");
    assert_eq!(again, Cancelled::NotFound, "R30");
}

case!(many_leaders_of_one_call_release_their_followers: R30 R8 => Followers ClientIds);
/// A call that settles many leaders releases the followers of all of them.
async fn many_leaders_of_one_call_release_their_followers(store: &Store) {
    let actor = store.actor("worker").await;
    let leaders: Vec<_> = (0..500).map(numbered_id).collect();
    actor.store(leaders.iter().map(job)).await;
    let held = actor.take(500).await;
    let followers = leaders.iter().flat_map(|leader| {
        ["1", "2", "3"].map(|payload| following(leader.as_str(), payload))
    });
    let followers: Vec<_> = followers.collect();
    store_all(&actor, &followers).await;

    actor.finish_all(&held).await;

    let stats = actor.figures().await;
    assert_eq!((stats.scheduled, stats.ready), (0, 1500), "R30");
}

case!(leaders_are_settled_in_steps_of_a_few_jobs: R30 R8 => Followers ClientIds);
/// So does a call of a backend whose steps handle a few jobs.
async fn leaders_are_settled_in_steps_of_a_few_jobs(store: &Store) {
    let actor = store.actor_in_steps("worker").await;
    actor.store((0..20).map(|number| job(&numbered_id(number)))).await;
    let held = actor.take(20).await;
    for number in 0..20 {
        let leader = numbered_id(number);
        let payloads = numbered(number).into_iter();
        actor.store(payloads.map(|one| following(leader.as_str(), one))).await;
    }

    actor.finish_all(&held).await;

    let stats = actor.figures().await;
    assert_eq!((stats.scheduled, stats.ready), (0, 190), "R30");
}

case!(a_purge_removes_held_jobs: R30 R23 => Followers ClientIds);
/// A purge of the queue removes held jobs like all others. A new job of the leader's id
/// releases none of them.
async fn a_purge_removes_held_jobs(store: &Store) {
    let actor = store.actor("operator").await;
    let second = || following("first", "second").id(id("second"));
    let hundred = || (0..100).map(|_| following("second", "third"));
    actor.store([named("first"), second()].into_iter().chain(hundred())).await;

    assert_eq!(actor.purge().await.expect("answered"), 102, "R23");
    actor.assert_cannot_follow_unknown("first").await;
    actor.store([named("first"), second()]).await;
    actor.finish(&actor.take_one().await).await;
    actor.store(hundred()).await;
    actor.cancel(&id("second")).await.expect("answered");

    actor.assert_none_ready("their leader was cancelled").await;
    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.cancelled), (0, 101), "R30 R23");
}
