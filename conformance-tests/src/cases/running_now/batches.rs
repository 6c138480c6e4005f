//! A piece of a batch is run now (R32, B3, B7).

use std::num::NonZeroU32;

use relq_core::{
    NewJob,
    batch::{BatchId, NewBatch},
    operator::{JobState, RunNow},
};

use crate::{
    cases::case,
    harness::{checks::payloads, store::Store, times::HELD},
};

fn batch() -> NewBatch {
    NewBatch::new(BatchId::new("batch").expect("a valid id"))
}

case!(a_piece_is_run_now: R32 B3 => Inspect Batches Delay);
/// A delayed piece becomes ready in its batch, whose limit holds.
async fn a_piece_is_run_now(store: &Store) {
    let actor = store.actor("worker").await;
    let new = batch().limit(Some(NonZeroU32::MIN));
    let batch = actor.make(&new).await;
    actor.fill(&batch, [NewJob::new("ready"), NewJob::new("later").delay(HELD)]).await;
    let later = actor.list(JobState::Scheduled, 10).await.remove(0);
    let later = later.id.expect("a piece has an id");

    assert_eq!(actor.run_now(&later).await, RunNow::Ready, "R32");

    let held = actor.take(10).await;
    assert_eq!(payloads(&held), ["ready"], "B3: one piece at a time");
    actor.finish(&held[0]).await;
    let held = actor.take(10).await;
    assert_eq!(payloads(&held), ["later"], "R32");
    assert_eq!(held[0].batch, Some(batch.clone()), "R32: it is a piece of its batch");
    actor.finish(&held[0]).await;
    let status = actor.close(&batch).await;
    assert_eq!((status.done, status.waiting), (2, 0), "B2");
}

case!(a_piece_of_a_cancelled_batch_is_dropped: R32 B7 => Inspect Batches Delay);
/// A piece of a batch that is being cancelled is never delivered.
async fn a_piece_of_a_cancelled_batch_is_dropped(store: &Store) {
    let actor = store.actor("worker").await;
    let batch = actor.make(&batch()).await;
    actor.fill(&batch, ["leased"]).await;
    actor.take_one().await;
    actor.fill(&batch, [NewJob::new("later").delay(HELD)]).await;
    let later = actor.list(JobState::Scheduled, 10).await.remove(0);
    actor.call_off(&batch).await;

    actor.run_now(&later.id.expect("a piece has an id")).await;

    actor.recover_all().await;
    assert_eq!(actor.take(10).await, [], "B7");
    assert_eq!(actor.figures().await.cancelled, 1, "B7: it is dropped");
}
