//! A piece of a batch is run now (R32, B3, B7).

use std::num::NonZeroU32;

use relq_core::{
    JobId,
    batch::{BatchId, NewBatch},
    operator::RunNow,
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{payloads, retry_after},
        store::Store,
        times::HELD,
    },
};

fn batch() -> NewBatch {
    NewBatch::new(BatchId::new("batch").expect("a valid id"))
}

/// Adds one piece to the batch, and claims it and asks for a retry. It is then scheduled.
async fn retried_piece(actor: &Actor, batch: &BatchId) -> JobId {
    actor.fill(batch, ["retried"]).await;
    let held = actor.take_one().await;
    actor.say(&held, retry_after(HELD)).await;
    held.job().clone()
}

case!(a_piece_is_run_now: R32 B3 => Inspect Batches);
/// A retried piece becomes ready in its batch, whose limit holds.
async fn a_piece_is_run_now(store: &Store) {
    let actor = store.actor("worker").await;
    let batch = actor.make(&batch().limit(Some(NonZeroU32::MIN))).await;
    let retried = retried_piece(&actor, &batch).await;
    actor.fill(&batch, ["ready"]).await;

    assert_eq!(actor.run_now(&retried).await, RunNow::Ready, "R32");

    let held = actor.take(10).await;
    assert_eq!(payloads(&held), ["ready"], "B3: one piece at a time");
    actor.finish(&held[0]).await;
    let held = actor.take(10).await;
    assert_eq!(payloads(&held), ["retried"], "R32");
    assert_eq!(held[0].batch, Some(batch.clone()), "R32: it is a piece of its batch");
    actor.finish(&held[0]).await;
    let status = actor.close(&batch).await;
    assert_eq!((status.done, status.waiting), (2, 0), "B2");
}

case!(a_piece_of_a_cancelled_batch_is_dropped: R32 B7 => Inspect Batches);
/// A piece of a batch that is being cancelled is never delivered.
async fn a_piece_of_a_cancelled_batch_is_dropped(store: &Store) {
    let actor = store.actor("worker").await;
    let batch = actor.make(&batch()).await;
    let retried = retried_piece(&actor, &batch).await;
    actor.fill(&batch, ["leased"]).await;
    actor.take_one().await;
    actor.call_off(&batch).await;

    actor.run_now(&retried).await;

    actor.recover_all().await;
    assert_eq!(actor.take(10).await, [], "B7");
    assert_eq!(actor.figures().await.cancelled, 1, "B7: it is dropped");
}
