//! A follower is held while its leader exists: nothing but the end of the leader releases
//! it (R30).

use std::time::Duration;

use relq_core::{
    Disposition, NewJob,
    operator::{JobState, Selection, StateDetail},
    outcome::DuplicateOf,
    unique::OnDuplicate,
};

use super::fixture::{following, named};
use crate::{
    cases::case,
    harness::{
        checks::{attempts, dead, duplicate, id, key, postpone, retry_now},
        store::Store,
        times::{BRIEF, HELD, LIFE, PAST_BRIEF, PAST_LIFE},
    },
};

case!(a_held_job_is_scheduled_without_a_due_time: R30 R23 => Followers ClientIds);
/// A held job counts as scheduled. No due time of it is reported, and no time that passes
/// makes it ready.
async fn a_held_job_is_scheduled_without_a_due_time(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    actor.store_one(following("leader", "follower")).await;

    let stats = actor.figures().await;
    assert_eq!((stats.scheduled, stats.ready), (1, 1), "R23");
    assert_eq!(stats.next_due_in, None, "R30: it has no due time");
    assert_eq!(actor.recover_all().await.next_in, None, "R30: it has no due time");
    let leader = actor.take_one().await;
    actor.say(&leader, postpone(Duration::ZERO)).await;
    store.advance(HELD).await;
    actor.assert_served(["leader"]).await;
    actor.assert_held([("leader", "follower")]).await;
}

case!(a_leader_that_comes_back_holds_its_follower: R30 R9 => Followers ClientIds);
/// A leader that is retried, postponed, given back, released or recovered still holds its
/// follower.
async fn a_leader_that_comes_back_holds_its_follower(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    actor.store_one(following("leader", "follower")).await;
    for back in [retry_now(), postpone(Duration::ZERO), Disposition::GiveBack] {
        actor.ends(&actor.take_one().await, back).await;
        actor.assert_held([("leader", "follower")]).await;
    }
    actor.take_one().await;
    actor.release_worker(actor.worker()).await.expect("answered");
    actor.assert_held([("leader", "follower")]).await;
    actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    actor.assert_held([("leader", "follower")]).await;

    actor.finish(&actor.take_one().await).await;

    actor.assert_served(["follower"]).await;
}

case!(a_dead_leader_holds_its_follower: R30 R11 => Followers ClientIds);
/// A dead leader still holds its follower, also one that is pushed then. If it is redriven
/// and done, they are ready.
async fn a_dead_leader_holds_its_follower(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    actor.store_one(following("leader", "before")).await;
    actor.ends(&actor.take_one().await, dead("no")).await;
    actor.store_one(following("leader", "after")).await;
    actor.assert_none_ready("the leader is dead").await;
    actor.assert_held([("leader", "before"), ("leader", "after")]).await;

    actor.redrive(&Selection::All).await.expect("answered");
    actor.assert_held([("leader", "before"), ("leader", "after")]).await;
    actor.finish(&actor.take_one().await).await;

    actor.assert_held([("", ""); 0]).await;
    assert_eq!(actor.figures().await.ready, 2, "R30: both are released");
}

case!(each_burial_of_a_leader_holds_its_follower: R30 R11 R17
    => Followers ClientIds Expiry);
/// A leader can be buried after its last attempt, by a recovery, or because it expires. Its
/// follower stays held each time, and is ready once the leader is redriven and done.
async fn each_burial_of_a_leader_holds_its_follower(store: &Store) {
    let actor = store.actor("worker").await;
    let last = named("leader").max_attempts(attempts(1));
    for leader in [last.clone(), last, named("leader").expires_in(LIFE)] {
        let expires = leader.expires_in.is_some();
        actor.store_one(leader).await;
        actor.store_one(following("leader", "follower")).await;
        if expires {
            store.advance(PAST_LIFE).await;
        } else if actor.figures().await.finished == 0 {
            actor.ends(&actor.take_one().await, retry_now()).await;
        } else {
            actor.take_one_briefly().await;
            store.outlast_brief_leases().await;
        }
        actor.assert_none_ready("the leader is dead").await;
        assert_eq!(actor.the_dead_one().await.payload, "leader", "R11");
        actor.assert_held([("leader", "follower")]).await;

        actor.redrive(&Selection::All).await.expect("answered");
        actor.finish(&actor.take_one().await).await;

        let follower = actor.take_one().await;
        assert_eq!(follower.payload, "follower", "R30");
        actor.finish(&follower).await;
        store.advance(HELD).await;
        actor.recover_all().await;
    }
}

case!(a_leader_that_cannot_be_redriven_holds_its_follower: R30 R16
    => Followers ClientIds Unique);
/// While another job has the unique key of a dead leader, the leader is not redriven, and
/// holds its follower.
async fn a_leader_that_cannot_be_redriven_holds_its_follower(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader").unique(key("k"))).await;
    actor.store_one(following("leader", "follower")).await;
    actor.ends(&actor.take_one().await, dead("no")).await;
    actor.store_one(NewJob::new("other").unique(key("k"))).await;

    let redriven = actor.redrive(&Selection::All).await.expect("answered");

    assert_eq!((redriven.moved, redriven.duplicates), (0, 1), "R16");
    let other = actor.take_one().await;
    assert_eq!(other.payload, "other", "R30: the leader is dead");
    actor.assert_held([("leader", "follower")]).await;
    actor.finish(&other).await;
    actor.redrive(&Selection::All).await.expect("answered");
    actor.finish(&actor.take_one().await).await;
    actor.assert_served(["follower"]).await;
}

case!(a_scheduled_leader_holds_its_follower: R30 R14 => Followers ClientIds Delay);
/// A leader with a delay holds its follower, also once it is due.
async fn a_scheduled_leader_holds_its_follower(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store([named("leader").delay(BRIEF), following("leader", "follower")]).await;
    actor.assert_held([("leader", "follower")]).await;
    assert!(actor.figures().await.next_due_in.is_some(), "R23: the leader has one");

    store.advance(PAST_BRIEF + actor.capabilities().lateness).await;
    actor.recover_all().await;

    let leader = actor.take(2).await;
    assert_eq!(leader.len(), 1, "R30: the follower is held");
    actor.finish(&leader[0]).await;
    actor.assert_served(["follower"]).await;
}

case!(the_key_of_a_held_job_is_bound: R30 R16 => Followers ClientIds Unique);
/// A held job has its unique key from its push on. A push that would move a scheduled job
/// does not move a held one.
async fn the_key_of_a_held_job_is_bound(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    let follower = following("leader", "follower").unique(key("k"));
    let follower = actor.store_one(follower).await;

    let wanted = duplicate(&follower, DuplicateOf::UniqueKey);
    let again = NewJob::new("again");
    let same = again.clone().unique(key("k"));
    assert_eq!(actor.offer(same).await, wanted, "R16");
    let moves = again.unique_or(key("k"), OnDuplicate::Reschedule);
    assert_eq!(actor.offer(moves).await, wanted, "R16");

    actor.assert_held([("leader", "follower")]).await;
    let leader = actor.take(2).await;
    assert_eq!(leader.len(), 1, "R30: the follower is held");
    actor.finish(&leader[0]).await;
    actor.assert_served(["follower"]).await;
}

case!(the_expiry_of_a_held_job_runs: R30 R17 => Followers ClientIds Expiry Unique);
/// The expiry of a held job is counted from its push. It is never delivered after it; it
/// is buried once its leader is done. Its unique key is free from the expiry on.
async fn the_expiry_of_a_held_job_runs(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    let leader = actor.take_one().await;
    let expiring = || following("leader", "follower").expires_in(LIFE).unique(key("k"));
    actor.store_one(expiring()).await;
    store.advance(PAST_LIFE).await;
    actor.recover_all().await;
    actor.store_one(NewJob::new("other").unique(key("k"))).await;

    actor.finish(&leader).await;

    actor.assert_served(["other"]).await;
    actor.assert_none_ready("it has expired").await;
    assert_eq!(actor.the_dead_one().await.payload, "follower", "R17");
    assert_eq!(actor.figures().await.scheduled, 0, "R30");
}

case!(a_held_job_that_lost_its_key_stays_held: R30 R16 R17 => Followers ClientIds Expiry Unique);
/// Another job takes the unique key of a held job that has expired. The held job stays held:
/// no redrive lets it run before its leader, and it is cancelled with its leader.
async fn a_held_job_that_lost_its_key_stays_held(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one(named("leader")).await;
    let leader = actor.take_one().await;
    let follower = following("leader", "follower").expires_in(LIFE).unique(key("k"));
    actor.store_one(follower).await;
    store.advance(PAST_LIFE).await;
    actor.store_one(NewJob::new("other").unique(key("k"))).await;
    actor.recover_all().await;

    actor.assert_held([("leader", "follower")]).await;
    let redriven = actor.redrive(&Selection::All).await.expect("redriven");
    assert_eq!(redriven.moved, 0, "R30: jobs that a redrive made ready");
    actor.assert_served(["other"]).await;
    actor.ends(&leader, Disposition::Discard).await;
    actor.recover_all().await;
    let figures = actor.figures().await;
    assert_eq!((figures.scheduled, figures.cancelled), (0, 1), "R30");
}

case!(a_held_job_is_listed_with_its_leader: R30 R23 => Followers ClientIds Delay);
/// Held jobs are listed among the scheduled ones, behind those with a due time, each with
/// the job that it follows. A list by pages has each once.
async fn a_held_job_is_listed_with_its_leader(store: &Store) {
    let actor = store.actor("producer").await;
    actor.store([named("one"), named("two")]).await;
    let follower = |leader, number: usize| following(leader, format!("job {number}"));
    for number in 0..6 {
        actor.store_one(follower(["one", "two"][number % 2], number)).await;
    }
    actor.store_one(NewJob::new("due").delay(HELD)).await;

    for page in [1, 2, 3, 7, 20] {
        let listed = actor.list(JobState::Scheduled, page).await;

        let is_due = matches!(listed[0].detail, StateDetail::Scheduled { .. });
        assert!(is_due, "R23: those with a due time come first: {:?}", listed[0]);
        let held = listed[1..].iter().map(|job| match &job.detail {
            StateDetail::Following { leader, .. } => {
                (leader.clone(), job.payload.clone())
            }
            other => panic!("R30: not held: {other:?}"),
        });
        let mut held: Vec<_> = held.collect();
        held.sort_by(|one, other| one.1.cmp(&other.1));
        let leaders = [id("one"), id("two")];
        let wanted = (0..6).map(|number| {
            (leaders[number % 2].clone(), format!("job {number}").into())
        });
        assert_eq!(held, wanted.collect::<Vec<_>>(), "R23: pages of {page}");
    }
}
