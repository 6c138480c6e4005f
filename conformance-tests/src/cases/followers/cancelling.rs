//! A follower whose leader ends without being done is cancelled, and so are its own
//! followers (R30).

use std::collections::BTreeSet;

use relq_core::{
    Disposition, NewJob, Priority,
    operator::{Cancelled, JobState, Selection},
    outcome::{DuplicateOf, Settled},
    results::JobResult,
};

use super::fixture::{following, named};
use crate::{
    cases::case,
    harness::{
        checks::{dead, duplicate, id, key},
        store::Store,
        times::HELD,
    },
};

case!(the_followers_of_a_cancelled_job_are_cancelled: R30 => Followers ClientIds);
/// The cancellation of a job cancels its followers, theirs, and so on, whatever the
/// priority of the job. Each counts as cancelled.
async fn the_followers_of_a_cancelled_job_are_cancelled(store: &Store) {
    let actor = store.actor("operator").await;
    let levels = &actor.capabilities().priorities;
    let levels = BTreeSet::from([*levels.start(), Priority::NORMAL, *levels.end()]);
    let mut all = 0;
    for priority in levels {
        let (first, second) =
            (format!("first-{priority}"), format!("second-{priority}"));
        let follower = following(&first, "second").id(id(&second));
        let leader = NewJob::new("first").id(id(&first)).priority(priority);
        actor.store([leader, follower, following(&second, "third")]).await;

        let cancelled = actor.cancel(&id(&first)).await.expect("answered");

        assert_eq!(cancelled, Cancelled::Removed(JobState::Ready), "{priority}");
        actor.assert_none_ready("all are cancelled").await;
        all += 3;
        let stats = actor.figures().await;
        assert_eq!(
            (stats.unfinished(), stats.cancelled),
            (0, all),
            "R30 R23 {priority}"
        );
    }
}

case!(each_end_but_done_cancels_the_followers: R30 => Followers ClientIds);
/// A follower is never delivered after its leader was discarded, or purged from the dead.
async fn each_end_but_done_cancels_the_followers(store: &Store) {
    let actor = store.actor("worker").await;
    for (name, end) in [("one", Disposition::Discard), ("two", dead("no"))] {
        actor.store([named(name), following(name, "follower")]).await;
        actor.ends(&actor.take_one().await, end).await;
    }
    actor.purge_dead(&Selection::All).await.expect("answered");

    actor.assert_none_ready("no leader was done").await;

    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.dead, stats.cancelled), (0, 0, 2), "R30 R23");
}

case!(the_record_of_a_cancelled_follower_names_its_leader: R30 R29
    => Followers ClientIds Results);
/// Of a follower that is cancelled because of its leader, the leader is told. Of one that
/// is itself cancelled, none is.
async fn the_record_of_a_cancelled_follower_names_its_leader(store: &Store) {
    let actor = store.actor("operator").await;
    let follower = || following("leader", "follower").keep_result(HELD);
    let jobs = actor.store([named("leader"), follower(), follower()]).await;

    let itself = actor.cancel(&jobs[1]).await.expect("answered");
    actor.cancel(&jobs[0]).await.expect("answered");
    actor.recover_all().await;

    assert_eq!(itself, Cancelled::Removed(JobState::Scheduled), "R30");
    actor.assert_told(&jobs[1], JobResult::Cancelled { leader: None }).await;
    let leader = Some(id("leader"));
    actor.assert_told(&jobs[2], JobResult::Cancelled { leader }).await;
}

case!(a_cancelled_leader_that_runs_releases_nobody: R30 R7 => Followers ClientIds);
/// A leader that is cancelled while its worker runs it cancels its follower. The worker's
/// ack comes too late, and releases nothing.
async fn a_cancelled_leader_that_runs_releases_nobody(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    actor.store_one(following("leader", "follower")).await;
    let leader = actor.take_one().await;

    let cancelled = actor.cancel(&id("leader")).await.expect("answered");

    assert_eq!(cancelled, Cancelled::Removed(JobState::Leased));
    assert_eq!(actor.say(&leader, Disposition::Done).await, Settled::LeaseLost, "R7");
    actor.assert_none_ready("the leader was cancelled").await;
    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.cancelled), (0, 2), "R30 R23");
    assert_eq!(stats.finished, 0, "R7");
}

case!(a_leader_is_cancelled_in_any_state: R30 => Followers ClientIds Delay);
/// A cancelled leader cancels its follower whether it is scheduled, held, ready or leased.
async fn a_leader_is_cancelled_in_any_state(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([named("runs"), named("due later").delay(HELD)]).await;
    let runs = actor.take_one().await;
    let held = following("runs", "held").id(id("held"));
    actor.store([named("ready"), held]).await;
    for leader in ["runs", "due later", "ready", "held"] {
        actor.store_one(following(leader, "follower")).await;
    }

    let mut told = Vec::new();
    for leader in ["due later", "held", "ready", "runs"] {
        told.push(actor.cancel(&id(leader)).await.expect("answered"));
    }

    let states =
        [JobState::Scheduled, JobState::Scheduled, JobState::Ready, JobState::Leased];
    assert_eq!(told, states.map(Cancelled::Removed), "R30");
    assert_eq!(actor.say(&runs, Disposition::Done).await, Settled::LeaseLost, "R7");
    actor.assert_none_ready("each was cancelled").await;
    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.cancelled), (0, 8), "R30 R23");
}

case!(a_cancelled_follower_leaves_its_leader_alone: R30 => Followers ClientIds);
/// A follower that is cancelled is not released, and the others are. The leader and its
/// other followers do not notice.
async fn a_cancelled_follower_leaves_its_leader_alone(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    let followers = ["1", "2", "3"].map(|payload| following("leader", payload));
    let followers = actor.store(followers).await;
    let leader = actor.take_one().await;

    actor.cancel(&followers[1]).await.expect("answered");
    actor.assert_held([("leader", "1"), ("leader", "3")]).await;
    actor.finish(&leader).await;

    let mut served = actor.take(3).await;
    served.sort_by(|one, other| one.payload.cmp(&other.payload));
    let served: Vec<_> = served.iter().map(|one| &one.payload[..]).collect();
    assert_eq!(served, [b"1", b"3"], "R30");

    // The audit at the end of each case would find what the last one leaves.
    actor.store_one(named("other")).await;
    let last = actor.store_one(following("other", "last")).await;
    actor.cancel(&last).await.expect("answered");
}

case!(a_cancelled_follower_frees_its_key_and_keeps_its_id: R30 R4 R16
    => Followers ClientIds Unique);
/// The unique key of a follower that was cancelled because of its leader is free, and its
/// id is remembered.
async fn a_cancelled_follower_frees_its_key_and_keeps_its_id(store: &Store) {
    let actor = store.actor("worker").await;
    let follower = || following("leader", "follower").id(id("mine")).unique(key("k"));
    actor.store([named("leader"), follower()]).await;
    actor.cancel(&id("leader")).await.expect("answered");
    actor.recover_all().await;

    let known = duplicate(&id("mine"), DuplicateOf::Id);
    assert_eq!(actor.offer(follower()).await, known, "R4");

    actor.store_one(NewJob::new("other").unique(key("k"))).await;
    actor.assert_served(["other"]).await;
}

case!(a_released_follower_does_not_follow_any_more: R30 => Followers ClientIds Delay);
/// A follower that was released is a job like all others: a new job of the leader's id
/// that is cancelled does not cancel it.
async fn a_released_follower_does_not_follow_any_more(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    let delayed = following("leader", "delayed").delay(2 * HELD);
    actor.store([following("leader", "follower"), delayed]).await;
    actor.finish(&actor.take_one().await).await;
    store.advance(HELD).await;
    actor.recover_all().await;
    actor.store_one(named("leader")).await;

    actor.cancel(&id("leader")).await.expect("answered");
    actor.recover_all().await;

    let stats = actor.figures().await;
    assert_eq!((stats.ready, stats.scheduled, stats.cancelled), (1, 1, 1), "R30");
}

case!(the_end_of_a_chain_names_the_jobs_before: R30 R29 => Followers ClientIds Results);
/// In a chain that is cancelled, each job's record names the job before it, also if the
/// first was discarded.
async fn the_end_of_a_chain_names_the_jobs_before(store: &Store) {
    let actor = store.actor("worker").await;
    let link = |leader, name| following(leader, name).id(id(name)).keep_result(HELD);
    actor
        .store([named("first"), link("first", "second"), link("second", "third")])
        .await;
    actor.assert_told(&id("third"), JobResult::Unfinished { progress: None }).await;

    actor.ends(&actor.take_one().await, Disposition::Discard).await;
    actor.recover_all().await;

    for (leader, follower) in [("first", "second"), ("second", "third")] {
        let leader = Some(id(leader));
        actor.assert_told(&id(follower), JobResult::Cancelled { leader }).await;
    }
}

case!(a_dead_leader_that_is_purged_cancels_a_chain: R30 => Followers ClientIds);
/// The purge of one dead leader cancels its followers and theirs, and not those of
/// another one.
async fn a_dead_leader_that_is_purged_cancels_a_chain(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([named("one"), named("two")]).await;
    for held in actor.take(2).await {
        actor.ends(&held, dead("no")).await;
    }
    let second = following("one", "second").id(id("second"));
    actor.store([second, following("second", "third")]).await;
    actor.store_one(following("two", "other")).await;

    let only = Selection::Only(vec![id("one")]);
    assert_eq!(actor.purge_dead(&only).await.expect("answered"), 1, "R23");

    actor.assert_none_ready("no leader was done").await;
    actor.assert_held([("two", "other")]).await;
    assert_eq!(actor.figures().await.cancelled, 2, "R30 R23");
}

case!(a_redriven_follower_follows_nobody: R30 R11 => Followers ClientIds);
/// A follower that was released and then died is redriven without its leader.
async fn a_redriven_follower_follows_nobody(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([named("leader"), following("leader", "follower")]).await;
    actor.finish(&actor.take_one().await).await;
    actor.ends(&actor.take_one().await, dead("no")).await;

    actor.redrive(&Selection::All).await.expect("answered");

    actor.assert_held([("", ""); 0]).await;
    actor.assert_served(["follower"]).await;
}
