//! The record of a completed batch is kept for the requested time, and is then removed
//! completely (B6).

use std::time::Duration;

use relq_core::batch::{BatchOutcome, BatchPriority, Change, NewBatch};

use crate::{
    cases::batches::fixture::{batch, completed, limit, telling},
    cases::case,
    harness::{
        checks::{dead, drain},
        store::Store,
    },
};

const RETENTION: Duration = Duration::from_secs(60 * 60);
const A_BIT: Duration = Duration::from_secs(1);
/// A time after which a backend has forgotten job ids and the results of push tokens
/// (R4).
const MEMORY: Duration = Duration::from_secs(6 * 60);

case!(a_record_is_kept_for_its_time: B6 => Batches);
/// The record of a completed batch stays unchanged for the requested time, and is then
/// removed.
async fn a_record_is_kept_for_its_time(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b").retention(RETENTION), 2).await;
    store.advance(RETENTION).await;
    actor.recover_all().await;
    actor.assert_running(&made).await;
    drain(&actor).await;
    let record = actor.status(&made).await;

    store.advance(RETENTION - A_BIT).await;
    actor.recover_all().await;
    assert_eq!(actor.status(&made).await, record);
    store.advance(2 * A_BIT).await;
    actor.recover_all().await;

    assert_eq!(actor.batches().batch(&made).await.expect("answered"), None);
}

case!(a_completed_batch_is_not_altered: B6 => Batches);
/// A change of the priority and the limit of a completed batch leaves its record as it is.
async fn a_completed_batch_is_not_altered(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&NewBatch::new(batch("b")), 1).await;
    drain(&actor).await;
    let record = actor.status(&made).await;
    let urgent = BatchPriority::new(70).expect("in range");
    let change = Change::default().priority(urgent).limit(limit(1));

    let altered = actor.batches().alter(&made, &change).await.expect("answered");

    assert_eq!(altered.as_ref(), Some(&record), "B6: the record of the batch");
    assert_eq!(actor.status(&made).await, record, "B6: the record stays unchanged");
}

case!(a_name_can_be_used_again: B5 B6 => Batches);
/// After a batch was removed, a new batch can have the same name and pushes its own
/// completion job.
async fn a_name_can_be_used_again(store: &Store) {
    let actor = store.actor("worker").await;
    let new = telling("b").retention(NewBatch::MIN_RETENTION);
    for _ in 0..3 {
        let made = actor.submit(&new, 1).await;
        let after = drain(&actor).await;
        assert_eq!((after.len(), completed(&after)), (2, 1));
        actor.assert_completed(&made, BatchOutcome::Done).await;
        store.advance(2 * NewBatch::MIN_RETENTION).await;
        actor.recover_all().await;
    }
}

case!(a_dead_letter_outlives_its_batch: B6 B8 => Batches);
/// A dead letter stays in the queue after the record of its batch was removed.
async fn a_dead_letter_outlives_its_batch(store: &Store) {
    let actor = store.actor("worker").await;
    let new = NewBatch::new(batch("b")).retention(A_BIT);
    let made = actor.submit(&new, 1).await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;
    store.advance(2 * A_BIT).await;
    actor.recover_all().await;
    assert_eq!(actor.batches().batch(&made).await.expect("answered"), None);

    let letter = actor.the_dead_one().await;
    let again = actor.submit(&new, 1).await;
    drain(&actor).await;

    assert_eq!(letter.payload, held.payload);
    let status = actor.status(&again).await;
    assert_eq!((status.total, status.done, status.failed), (1, 1, 0));
}

case!(a_purge_removes_batches: R23 => Batches);
/// A purge removes batches without completing them.
async fn a_purge_removes_batches(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b"), 3).await;
    let open = actor.make(&telling("open")).await;
    let held = actor.take_one().await;

    assert_eq!(actor.purge().await.expect("answered"), 3);

    for gone in [&made, &open] {
        assert_eq!(actor.batches().batch(gone).await.expect("answered"), None);
    }
    assert_eq!(
        actor.say(&held, relq_core::Disposition::Done).await,
        relq_core::outcome::Settled::LeaseLost,
    );
    actor.recover_all().await;
    assert_eq!(drain(&actor).await, []);
    let again = actor.submit(&telling("b"), 1).await;
    assert_eq!(drain(&actor).await.len(), 2);
    actor.assert_completed(&again, BatchOutcome::Done).await;
}

case!(nothing_is_left_of_a_batch: B6 => Batches @ counted);
/// Removed batches leave nothing in the store (NO-ORPHAN-KEYS).
async fn nothing_is_left_of_a_batch(store: &Store) {
    let actor = store.actor("worker").await;
    let mut sizes = Vec::new();
    for round in 0..4 {
        for name in ["done", "cancelled", "empty"] {
            let new = telling(&format!("{name}{round}")).retention(A_BIT);
            let made = actor.submit(&new, if name == "empty" { 0 } else { 3 }).await;
            if name == "cancelled" {
                actor.call_off(&made).await;
            }
            drain(&actor).await;
        }
        store.advance(MEMORY).await;
        actor.recover_all().await;
        sizes.push(store.size().await);
    }

    assert_eq!(sizes[2], sizes[1]);
    assert_eq!(sizes[3], sizes[1]);
}
