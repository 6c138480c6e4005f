//! A receipt whose lease is over settles nothing (R7).

use bytes::Bytes;
use relq_core::{
    Delivery, Disposition, NewJob, Receipt, Settlement,
    outcome::{Extended, Settled},
};

use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, delivers, id, retry_after},
        store::Store,
        times::{HELD, PAST_WINDOW},
    },
};

/// A job whose lease expired, and which the same worker then claimed again. It comes
/// with the old and the current delivery.
pub(crate) struct Lost {
    pub(crate) actor: Actor,
    pub(crate) stale: Delivery,
    pub(crate) current: Delivery,
}

pub(crate) async fn lose_and_retake(store: &Store) -> Lost {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let stale = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    let current = actor.take_one().await;
    Lost { actor, stale, current }
}

async fn changes_nothing(store: &Store, disposition: Disposition) {
    let Lost { actor, stale, current } = lose_and_retake(store).await;

    let settled = actor.say(&stale, disposition).await;

    assert_eq!(settled, Settled::LeaseLost, "R7: a settlement by an old receipt");
    let stats = actor.figures().await;
    assert_eq!(
        (stats.leased, stats.unfinished(), stats.dead),
        (1, 1, 0),
        "R7: the job is still leased: {stats:?}"
    );
    assert_eq!(stats.finished + stats.discarded, 0, "R7: the job ended: {stats:?}");
    actor.finish(&current).await;
}

case!(late_ack_changes_nothing: R7, real_time);
/// An ack with the receipt of an earlier lease is refused and does not end the new
/// lease.
async fn late_ack_changes_nothing(store: &Store) {
    changes_nothing(store, Disposition::Done).await;
}

case!(late_retry_changes_nothing: R7);
/// A retry with the receipt of an earlier lease is refused and does not delay the job.
async fn late_retry_changes_nothing(store: &Store) {
    changes_nothing(store, retry_after(HELD)).await;
}

case!(late_burial_changes_nothing: R7);
/// A burial with the receipt of an earlier lease is refused, and the job stays leased.
async fn late_burial_changes_nothing(store: &Store) {
    changes_nothing(store, dead("late")).await;
}

case!(late_discard_changes_nothing: R7);
/// A discard with the receipt of an earlier lease is refused, and the job stays leased.
async fn late_discard_changes_nothing(store: &Store) {
    changes_nothing(store, Disposition::Discard).await;
}

case!(late_give_back_changes_nothing: R7);
/// A give-back with the receipt of an earlier lease is refused, and the job stays
/// leased.
async fn late_give_back_changes_nothing(store: &Store) {
    changes_nothing(store, Disposition::GiveBack).await;
}

case!(late_ack_of_a_ready_job_changes_nothing: R7);
/// A late ack is refused while the job is ready again and not yet claimed.
async fn late_ack_of_a_ready_job_changes_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let stale = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;

    assert_eq!(actor.say(&stale, Disposition::Done).await, Settled::LeaseLost);

    delivers(&actor, ["job"]).await;
}

case!(a_given_back_receipt_is_stale: R7);
/// A receipt becomes stale when its job is given back, even if the next lease has the
/// same worker, job and attempt number.
async fn a_given_back_receipt_is_stale(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let stale = actor.take_one().await;
    actor.say(&stale, Disposition::GiveBack).await;
    let current = actor.take_one().await;
    assert_eq!(current.attempt(), stale.attempt());

    assert_eq!(actor.say(&stale, Disposition::Done).await, Settled::LeaseLost);

    assert_ne!(current.receipt, stale.receipt);
    actor.finish(&current).await;
}

case!(a_receipt_is_stale_for_the_next_job_of_its_id: R7 R4 => ClientIds);
/// A leased job ends or is removed, and a new job takes its id. The same worker claims that one,
/// on the same attempt: the receipt of the first one neither settles nor extends it.
async fn a_receipt_is_stale_for_the_next_job_of_its_id(store: &Store) {
    let actor = store.actor("worker").await;
    for how in ["ack", "cancel", "purge"] {
        // A store that begins to count again after a purge gives equal numbers to both jobs.
        actor.purge().await.expect("answered");
        actor.store_one(NewJob::new("first").id(id("mine"))).await;
        let stale = actor.take_one().await;
        match how {
            "ack" => actor.finish(&stale).await,
            "cancel" => drop(actor.cancel(stale.job()).await.expect("answered")),
            _ => drop(actor.purge().await.expect("answered")),
        }
        store.advance(PAST_WINDOW).await;
        actor.recover_all().await;
        actor.store_one(NewJob::new("second").id(id("mine"))).await;
        let current = actor.take_one().await;
        assert_eq!(current.attempt(), stale.attempt());

        let kept = actor.keep(&stale, HELD).await.expect("answered");
        let settled = actor.say(&stale, Disposition::Done).await;

        let is_kept = matches!(kept, Extended::Until(_));
        assert!(!is_kept, "R7: a heartbeat after: {how}: {kept:?}");
        assert_eq!(settled, Settled::LeaseLost, "R7: an ack after: {how}");
        let kept = actor.keep(&current, HELD).await.expect("answered");
        let is_kept = matches!(kept, Extended::Until(_));
        assert!(is_kept, "R10: a heartbeat of the second job after: {how}: {kept:?}");
        actor.finish(&current).await;
        store.advance(PAST_WINDOW).await;
        actor.recover_all().await;
    }
}

case!(a_receipt_is_stale_after_release: R7);
/// A receipt is stale once its worker was released.
async fn a_receipt_is_stale_after_release(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let stale = actor.take_one().await;
    actor.release_worker(actor.worker()).await.expect("answered");
    let current = actor.take_one().await;

    assert_eq!(actor.say(&stale, dead("late")).await, Settled::LeaseLost);

    actor.finish(&current).await;
}

case!(a_retried_receipt_is_stale: R7);
/// A receipt is stale after a retry.
async fn a_retried_receipt_is_stale(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.say(&held, retry_after(HELD)).await;

    assert_eq!(actor.say(&held, Disposition::Done).await, Settled::LeaseLost);

    assert_eq!(actor.figures().await.scheduled, 1);
}

case!(a_buried_receipt_is_stale: R7);
/// The old receipt of a buried job cannot finish the job.
async fn a_buried_receipt_is_stale(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.say(&held, dead("no")).await;

    assert_eq!(actor.say(&held, Disposition::Done).await, Settled::LeaseLost);

    assert_eq!(actor.the_dead_one().await.payload, "job");
}

case!(a_second_ack_is_lost: R7);
/// A second ack is refused and not counted.
async fn a_second_ack_is_lost(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    actor.finish(&held).await;

    assert_eq!(actor.say(&held, Disposition::Done).await, Settled::LeaseLost);

    assert_eq!(actor.figures().await.finished, 1);
}

case!(forged_receipts_are_lost: R7);
/// A settlement with a forged receipt returns `LeaseLost`, not an error, and changes
/// nothing.
async fn forged_receipts_are_lost(store: &Store) {
    let actor = store.actor("worker").await;
    actor.store_one("job").await;
    let held = actor.take_one().await;
    let tokens: [&'static [u8]; 7] =
        [b"", b"0", b"1", b"-1", b"\0\xff*{}", b"9223372036854775808", &[b'x'; 4096]];
    let said: Vec<_> = tokens
        .into_iter()
        .map(|token| Receipt::new(held.job().clone(), 1, Bytes::from_static(token)))
        .map(|receipt| Settlement::new(receipt, Disposition::Done))
        .collect();

    let settled = actor.settle(&said).await.expect("answered");

    assert_eq!(settled, [Settled::LeaseLost; 7]);
    actor.finish(&held).await;
}
