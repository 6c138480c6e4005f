//! The counts of each state and of each end of a job, also after a purge.

use relq_core::{Disposition, NewJob, outcome::Settled};

use crate::{
    cases::case,
    harness::{
        checks::{dead, numbered, retry_after, settle_all},
        store::Store,
        times::{BRIEF, HELD},
    },
};

case!(a_new_queue_is_empty: R23);
/// A new queue has no jobs.
async fn a_new_queue_is_empty(store: &Store) {
    let actor = store.actor("operator").await;

    assert_eq!(actor.figures().await, relq_core::Stats::new());

    assert_eq!(actor.audit().await.expect("answered").jobs, 0);
}

case!(every_state_is_counted: R23);
/// The stats have a count for each state, and for each way in which a job ends.
async fn every_state_is_counted(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(28)).await;
    let held = actor.take(21).await;
    settle_all(&actor, &held[..1], &Disposition::Done).await;
    settle_all(&actor, &held[1..3], &Disposition::Discard).await;
    settle_all(&actor, &held[3..6], &dead("no")).await;
    settle_all(&actor, &held[6..10], &retry_after(HELD)).await;
    for one in &held[10..15] {
        actor.cancel(one.job()).await.expect("answered");
    }

    let stats = actor.figures().await;

    assert_eq!((stats.finished, stats.discarded, stats.dead), (1, 2, 3));
    assert_eq!((stats.scheduled, stats.cancelled), (4, 5));
    assert_eq!((stats.leased, stats.ready, stats.overdue), (6, 7, 0));
}

case!(overdue_leases_are_counted: R23);
/// An expired lease is counted as overdue until a recovery handles it.
async fn overdue_leases_are_counted(store: &Store) {
    let (actor, dying) = (store.actor("w1").await, store.actor("w2").await);
    actor.store(numbered(5)).await;
    actor.take(2).await;
    dying.take_briefly(3).await;
    store.outlast_brief_leases().await;

    let stats = actor.figures().await;
    actor.recover_all().await;

    assert_eq!((stats.leased, stats.overdue), (5, 3));
    let after = actor.figures().await;
    assert_eq!((after.leased, after.overdue, after.ready), (2, 0, 3));
}

case!(due_jobs_are_not_overdue: R23 R27 => Delay);
/// A scheduled job that is due is not counted as overdue, and an overdue lease does not
/// count as a job that waits.
async fn due_jobs_are_not_overdue(store: &Store) {
    let (actor, dying) = (store.actor("w1").await, store.actor("w2").await);
    actor.store_one("held").await;
    dying.take_one_briefly().await;
    store.outlast_brief_leases().await;
    store.advance(HELD).await;

    let stats = actor.figures().await;
    assert_eq!((stats.leased, stats.overdue, stats.scheduled), (1, 1, 0));
    assert_eq!(stats.oldest_ready_age, None, "R27: a leased job waits for no worker");

    actor.store_one(NewJob::new("due").delay(BRIEF)).await;
    store.outlast_brief_leases().await;
    let stats = actor.figures().await;
    assert_eq!((stats.leased, stats.overdue), (1, 1));
    assert_eq!(stats.scheduled + stats.ready, 1);
}

case!(all_levels_are_counted: R23 => Priority);
/// Jobs of all priorities are counted together.
async fn all_levels_are_counted(store: &Store) {
    let actor = store.actor("producer").await;
    let levels: Vec<_> = actor.class().levels().collect();
    for level in &levels {
        actor.store_one(NewJob::new("job").priority(*level)).await;
    }

    assert_eq!(actor.figures().await.ready, levels.len() as u64);
}

case!(a_purge_removes_everything: R23 => Delay);
/// A purge removes every job in every state, resets the counts, and returns how
/// many jobs there were.
async fn a_purge_removes_everything(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(4)).await;
    actor.store_one(NewJob::new("later").delay(HELD)).await;
    let held = actor.take(3).await;
    actor.finish(&held[0]).await;
    actor.say(&held[1], dead("no")).await;
    actor.say(&actor.take_one().await, Disposition::Discard).await;
    let cancelled = actor.store_one("cancelled").await;
    actor.cancel(&cancelled).await.expect("answered");

    assert_eq!(actor.purge().await.expect("answered"), 3);

    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.dead), (0, 0));
    assert_eq!((stats.finished, stats.discarded, stats.cancelled), (0, 0, 0));
    assert_eq!(actor.purge().await.expect("answered"), 0);
    assert_eq!(actor.say(&held[2], Disposition::Done).await, Settled::LeaseLost);
    assert_eq!(actor.figures().await.finished, 0);
}

case!(a_purged_queue_works: R23 R24);
/// After a purge the queue works like a new one.
async fn a_purged_queue_works(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store(numbered(3)).await;
    actor.take(2).await;
    actor.purge().await.expect("answered");
    assert_eq!(actor.release_worker(actor.worker()).await.expect("answered").jobs, 0);
    store.outlast_brief_leases().await;
    assert_eq!(actor.recover_all().await.requeued, 0);

    actor.store_one("after").await;

    let held = actor.take_one().await;
    assert_eq!((&held.payload[..], held.attempt()), (&b"after"[..], 1));
    actor.finish(&held).await;
}

case!(a_purge_removes_thousands: R23);
/// A purge of many jobs removes all of them.
async fn a_purge_removes_thousands(store: &Store) {
    let actor = store.actor("worker").await;
    for batch in numbered(8_500).chunks(500) {
        actor.store(batch.to_vec()).await;
    }

    assert_eq!(actor.purge().await.expect("answered"), 8_500);

    assert_eq!(actor.figures().await.unfinished(), 0);
}
