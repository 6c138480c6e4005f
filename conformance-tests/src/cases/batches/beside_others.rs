//! A call on a batch reaches this batch, and no other of its queue (B1).

use relq_core::batch::{BatchId, BatchPriority, Change, NewBatch};

use crate::{
    cases::{
        batches::fixture::{batch, limit, of, pieces},
        case,
    },
    harness::{actor::Actor, checks::drain, store::Store},
};

/// The records of these batches, as text.
async fn records(actor: &Actor, batches: &[BatchId]) -> Vec<String> {
    let mut records = Vec::new();
    for batch in batches {
        records.push(format!("{:?}", actor.status(batch).await));
    }
    records
}

case!(a_call_on_a_batch_changes_no_other: B1 B4 B7 => Batches);
/// Of three batches, each with a leased and a waiting piece, the second one is changed,
/// sealed and cancelled. The records of the others stay as they are, they take further
/// pieces, and all their pieces are served.
async fn a_call_on_a_batch_changes_no_other(store: &Store) {
    let actor = store.actor("worker").await;
    let [first, second, third] = ["a", "b", "c"].map(batch);
    for made in [&first, &second, &third] {
        actor.make(&NewBatch::new(made.clone())).await;
        actor.fill(made, pieces(made, 1)).await;
    }
    let held = actor.take(3).await;
    let others = [first, third];
    for made in others.iter().chain([&second]) {
        actor.fill(made, pieces(made, 2)).await;
    }
    let before = records(&actor, &others).await;

    let urgent = BatchPriority::new(70).expect("in range");
    let change = Change::default().priority(urgent).limit(limit(1));
    actor.batches().alter(&second, &change).await.expect("answered");
    assert_eq!(records(&actor, &others).await, before, "B4: after an alteration of b");
    actor.close(&second).await;
    assert_eq!(records(&actor, &others).await, before, "B1: after the seal of b");
    actor.call_off(&second).await;
    assert_eq!(records(&actor, &others).await, before, "B7: after the cancel of b");

    for other in &others {
        actor.fill(other, pieces(other, 1)).await;
    }
    let served = drain(&actor).await;
    for other in &others {
        assert_eq!(of(&served, other), 3, "B1: pieces of {other}");
    }
    for piece in &held {
        if piece.batch.as_ref() != Some(&second) {
            actor.finish(piece).await;
        }
    }
}
