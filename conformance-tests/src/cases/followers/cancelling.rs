//! A follower whose leader ends without being done is cancelled, and so are its own
//! followers (R30).

use relq_core::{
    Disposition,
    operator::{Cancelled, JobState, Selection},
    results::JobResult,
};

use super::fixture::{following, named};
use crate::{
    cases::case,
    harness::{
        checks::{dead, id},
        store::Store,
        times::HELD,
    },
};

case!(the_followers_of_a_cancelled_job_are_cancelled: R30 => Followers ClientIds);
/// The cancellation of a job cancels its followers, theirs, and so on. Each counts as
/// cancelled.
async fn the_followers_of_a_cancelled_job_are_cancelled(store: &Store) {
    let actor = store.actor("operator").await;
    let second = following("first", "second").id(id("second"));
    actor.store([named("first"), second, following("second", "third")]).await;

    let cancelled = actor.cancel(&id("first")).await.expect("answered");

    assert_eq!(cancelled, Cancelled::Removed(JobState::Ready));
    actor.assert_none_ready("all are cancelled").await;
    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.cancelled), (0, 3), "R30 R23");
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
