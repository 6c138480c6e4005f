//! Each event that makes a piece claimable wakes a waiting claim (R21, B3).

use std::time::Duration;

use relq_core::{
    Delivery, NewJob,
    batch::{Change, NewBatch, OnComplete},
};
use tokio::task::JoinHandle;

use crate::{
    cases::batches::fixture::{COMPLETE, batch, limit},
    cases::case,
    harness::{
        actor::Actor,
        checks::{payloads, retry_after},
        store::Store,
    },
};

const WAIT: Duration = Duration::from_secs(30);
const SOON: Duration = Duration::from_secs(1);

/// Starts a claim that waits for one job, in a task of its own.
async fn waiting(store: &Store, worker: &Actor) -> JoinHandle<Vec<Delivery>> {
    let worker = worker.clone();
    let waiting = tokio::spawn(async move { worker.take_waiting(1, WAIT).await });
    store.settled().await;
    assert!(!waiting.is_finished(), "nothing can be claimed");
    waiting
}

async fn is_woken(store: &Store, by: &Actor, waiting: JoinHandle<Vec<Delivery>>) {
    let limit = store.wake_limit(by.capabilities().lateness);
    let (taken, _) = store.woken_within(limit, waiting).await;
    assert_eq!(taken.expect("the claim ends").len(), 1);
}

case!(an_added_piece_wakes: R21 => Batches BlockingWait);
/// Pieces that are added to a batch wake a waiting claim.
async fn an_added_piece_wakes(store: &Store) {
    for (worker, actor) in store.pairs().await {
        let made = actor.make(&NewBatch::new(batch("b"))).await;
        let waiter = waiting(store, &worker).await;

        actor.fill(&made, ["a"]).await;

        is_woken(store, &actor, waiter).await;
        actor.purge().await.expect("answered");
    }
}

case!(a_free_slot_wakes: B3 => Batches BlockingWait);
/// When a slot of a batch becomes free, a waiting claim wakes.
async fn a_free_slot_wakes(store: &Store) {
    for (worker, actor) in store.pairs().await {
        actor.submit(&NewBatch::new(batch("b")).limit(limit(1)), 2).await;
        let held = actor.take_one().await;
        let waiter = waiting(store, &worker).await;

        actor.finish(&held).await;

        is_woken(store, &actor, waiter).await;
        actor.purge().await.expect("answered");
    }
}

case!(a_completion_of_any_level_wakes: B5 R15 R21 => Batches BlockingWait);
/// A completion job of any priority wakes a waiting claim.
async fn a_completion_of_any_level_wakes(store: &Store) {
    for (worker, actor) in store.pairs().await {
        for level in [actor.class().least_urgent(), actor.class().most_urgent()] {
            let told = OnComplete::new(NewJob::new(COMPLETE).priority(level));
            actor.submit(&NewBatch::new(batch("b")).on_complete(told), 1).await;
            let held = actor.take_one().await;
            let waiter = waiting(store, &worker).await;

            actor.finish(&held).await;

            is_woken(store, &actor, waiter).await;
            actor.purge().await.expect("answered");
        }
    }
}

case!(a_resume_wakes_a_claim_for_each_batch: B4 R21 => Batches BlockingWait);
/// Two claims wait on a paused queue, in which each of two batches has a piece, or one batch
/// has a piece beside a job of no batch. A resume wakes both claims.
async fn a_resume_wakes_a_claim_for_each_batch(store: &Store) {
    let actor = store.actor("operator").await;
    let workers = [store.actor("w1").await, store.actor("w2").await];
    for batches in [&["a", "b"][..], &["a"]] {
        actor.pause().await.expect("answered");
        for name in batches {
            actor.submit(&NewBatch::new(batch(name)), 1).await;
        }
        if batches.len() < workers.len() {
            actor.store_one("plain").await;
        }
        let mut waiters = Vec::new();
        for worker in &workers {
            waiters.push(waiting(store, worker).await);
        }

        actor.resume().await.expect("answered");

        for waiter in waiters {
            is_woken(store, &actor, waiter).await;
        }
        actor.purge().await.expect("answered");
    }
}

case!(what_is_due_wakes_behind_a_full_batch: R14 B3 => Batches BlockingWait Delay);
/// A claim waits for a job that is due later. A piece that falls due earlier, in a
/// batch without a free slot, does not keep the claim from that job.
async fn what_is_due_wakes_behind_a_full_batch(store: &Store) {
    store.stop_clock();
    let (worker, actor) = (store.actor("waiter").await, store.actor("worker").await);
    actor.submit(&NewBatch::new(batch("b")).limit(limit(1)), 2).await;
    let first = actor.take_one().await;
    actor.say(&first, retry_after(SOON)).await;
    actor.take_one().await;
    actor.store_one(NewJob::new("later").delay(2 * SOON)).await;
    let waiter = waiting(store, &worker).await;

    store.advance(SOON).await;
    store.settled().await;
    assert!(!waiter.is_finished(), "B3: the batch has no free slot");
    store.advance(2 * SOON).await;

    let limit = store.wake_limit(actor.capabilities().lateness);
    let (taken, _) = store.within(limit, waiter).await;
    assert_eq!(payloads(&taken.expect("the claim ends")), ["later"]);
}

case!(a_raised_limit_wakes: B3 => Batches BlockingWait);
/// When an operator raises the limit of a batch, a waiting claim wakes.
async fn a_raised_limit_wakes(store: &Store) {
    for (worker, actor) in store.pairs().await {
        let made = actor.submit(&NewBatch::new(batch("b")).limit(limit(1)), 2).await;
        actor.take_one().await;
        let waiter = waiting(store, &worker).await;

        let change = Change::default().limit(limit(2));
        actor.batches().alter(&made, &change).await.expect("answered");

        is_woken(store, &actor, waiter).await;
        actor.purge().await.expect("answered");
    }
}

case!(a_purge_ends_a_wait_for_a_batch: B6 R23 => Batches);
/// A purge removes the batch that a caller waits for, and the wait returns.
async fn a_purge_ends_a_wait_for_a_batch(store: &Store) {
    for (waiter, operator) in store.pairs().await {
        let made = operator.submit(&NewBatch::new(batch("b")), 1).await;
        let waiting =
            tokio::spawn(async move { waiter.batches().wait_batch(&made, WAIT).await });
        store.settled().await;

        operator.purge().await.expect("answered");

        let (ended, _) = store.within(store.response_limit(), waiting).await;
        let status = ended.expect("the wait ends").expect("answered");
        assert_eq!(status, None, "B6: the batch is gone");
    }
}

case!(a_full_batch_keeps_nobody_awake: R21 => Batches);
/// If every ready piece belongs to a batch without a free slot, a claim waits for its
/// full time.
async fn a_full_batch_keeps_nobody_awake(store: &Store) {
    let actor = store.actor("worker").await;
    actor.submit(&NewBatch::new(batch("b")).limit(limit(1)), 2).await;
    actor.take_one().await;
    let wait = Duration::from_millis(300);

    let limit = wait + store.response_limit();
    let (taken, took) = store.within(limit, actor.take_waiting(1, wait)).await;

    assert_eq!(taken, []);
    assert!(took >= wait, "{took:?}");
}
