//! A follower is held while its leader exists: nothing but the end of the leader releases
//! it (R30).

use std::time::Duration;

use relq_core::{Disposition, operator::Selection};

use super::fixture::{following, named};
use crate::{
    cases::case,
    harness::{
        checks::{dead, postpone, retry_now},
        store::Store,
        times::HELD,
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
