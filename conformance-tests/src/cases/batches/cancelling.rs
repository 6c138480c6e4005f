//! After a cancel, a batch gives out no pieces, accepts no new ones, and ends (B7).

use std::{num::NonZeroU16, time::Duration};

use relq_core::{
    Disposition, NewJob,
    batch::{Added, BatchOutcome, NewBatch},
    outcome::{Extended, Pushed, Settled},
};

use crate::{
    cases::batches::fixture::{batch, completed, limit, of, pieces, telling},
    cases::case,
    harness::{
        checks::{assert_applied, drain, postpone, retry_after, retry_now, settle_all},
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

case!(a_cancelled_batch_gives_nothing: B7 => Batches);
/// A cancel drops the pieces that have not started. If no piece is leased, the batch
/// ends at once.
async fn a_cancelled_batch_gives_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b"), 5).await;

    let status = actor.call_off(&made).await;

    assert_eq!(status.outcome(), Some(BatchOutcome::Cancelled));
    assert_eq!((status.total, status.dropped, status.waiting), (5, 5, 0));
    let after = drain(&actor).await;
    assert_eq!((after.len(), completed(&after)), (1, 1));
    let stats = actor.figures().await;
    assert_eq!((stats.cancelled, stats.unfinished()), (5, 0));
}

case!(a_cancel_drops_what_is_retried: B7 B9 => Batches);
/// A cancelled batch also drops its pieces that wait for a retry.
async fn a_cancel_drops_what_is_retried(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&NewBatch::new(batch("b")), 2).await;
    let held = actor.take_one().await;
    actor.say(&held, retry_after(BRIEF)).await;

    let status = actor.call_off(&made).await;

    assert_eq!((status.outcome(), status.dropped), (Some(BatchOutcome::Cancelled), 2));
    assert_eq!(actor.figures().await.unfinished(), 0, "R23");
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    assert_eq!(actor.take(5).await, []);
}

case!(many_retried_pieces_are_dropped: B7 B9 => Batches);
/// A cancel drops all pieces that wait for a retry, however many they are.
async fn many_retried_pieces_are_dropped(store: &Store) {
    const MANY: u32 = 400;
    let actor = store.actor("worker").await;
    let made = actor.submit(&NewBatch::new(batch("b")), MANY as usize).await;
    let held = actor.take(MANY).await;
    assert_applied(&settle_all(&actor, &held, &retry_after(HELD)).await);

    let status = actor.call_off(&made).await;

    let ended = (status.outcome(), status.dropped);
    let expected = (Some(BatchOutcome::Cancelled), u64::from(MANY));
    assert_eq!(ended, expected, "B7: the cancelled batch");
    let stats = actor.figures().await;
    let counts = (stats.unfinished(), stats.cancelled);
    assert_eq!(counts, (0, u64::from(MANY)), "R23: unfinished and cancelled pieces");
}

case!(a_running_piece_is_told: B7 => Batches);
/// When the batch of a leased piece was cancelled, the worker's next heartbeat reports
/// the cancel and ends that piece. If it is the last piece, the batch completes.
async fn a_running_piece_is_told(store: &Store) {
    let (worker, operator) = (store.actor("w").await, store.actor("o").await);
    let made = worker.submit(&telling("b"), 3).await;
    let held = worker.take_one().await;

    let status = operator.call_off(&made).await;
    assert_eq!((status.leased, status.dropped, status.completed_at), (1, 2, None));
    let stats = operator.figures().await;
    let counts = (stats.ready, stats.leased, stats.cancelled);
    assert_eq!(counts, (0, 1, 2), "R23: ready, leased and cancelled pieces");
    assert_eq!(operator.take(5).await, []);
    let told_so = worker.keep(&held, HELD).await.expect("answered");

    assert_eq!(told_so, Extended::Cancelled);
    operator.assert_completed(&made, BatchOutcome::Cancelled).await;
    assert_eq!(operator.status(&made).await.dropped, 3);
    assert_eq!(worker.say(&held, Disposition::Done).await, Settled::LeaseLost);
    assert_eq!(worker.keep(&held, HELD).await.expect("answered"), Extended::Cancelled);
    assert_eq!(completed(&drain(&operator).await), 1);
}

case!(what_is_done_meanwhile_counts: B7 => Batches);
/// A piece that is finished before its worker learns of the cancel counts as done.
async fn what_is_done_meanwhile_counts(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b"), 3).await;
    let held = actor.take(2).await;
    actor.call_off(&made).await;

    actor.finish(&held[0]).await;
    let dead = Disposition::Dead { error: "no".to_owned() };
    assert_eq!(actor.say(&held[1], dead).await, Settled::Applied);

    actor.assert_completed(&made, BatchOutcome::Cancelled).await;
    let status = actor.status(&made).await;
    assert_eq!((status.done, status.failed, status.dropped), (1, 1, 1));
    assert_eq!(completed(&drain(&actor).await), 1);
}

case!(nothing_comes_back_to_a_cancelled_batch: B7 => Batches);
/// If a leased piece of a cancelled batch is retried, postponed, given back, released or
/// recovered, it is dropped.
async fn nothing_comes_back_to_a_cancelled_batch(store: &Store) {
    let (one, two) = (store.actor("w1").await, store.actor("w2").await);
    let made = one.submit(&telling("b"), 9).await;
    let held = one.take(6).await;
    assert_eq!(two.take(1).await.len(), 1);
    assert_eq!(two.acting_as("w3").take_briefly(1).await.len(), 1);
    one.call_off(&made).await;

    let dispositions = [
        Disposition::GiveBack,
        retry_now(),
        retry_after(BRIEF),
        postpone(Duration::ZERO),
        postpone(BRIEF),
        Disposition::Discard,
    ];
    for (held, disposition) in held.iter().zip(dispositions) {
        assert_eq!(one.say(held, disposition).await, Settled::Applied);
        assert_eq!(one.take(9).await, []);
    }
    two.release_worker(two.worker()).await.expect("answered");
    assert_eq!(one.take(9).await, []);
    store.outlast_brief_leases().await;
    one.recover_all().await;

    one.assert_completed(&made, BatchOutcome::Cancelled).await;
    assert_eq!(one.status(&made).await.dropped, 9);
    let ended = one.figures().await;
    assert_eq!((ended.cancelled, ended.discarded), (8, 1), "R23");
    let after = drain(&one).await;
    assert_eq!((after.len(), completed(&after)), (1, 1));
}

case!(pieces_come_back_to_several_cancelled_batches: B5 B7 => Batches);
/// A call gives back the last pieces of several cancelled batches. It drops all of them, and
/// completes each batch.
async fn pieces_come_back_to_several_cancelled_batches(store: &Store) {
    let actor = store.actor("worker").await;
    let mut cancelled = Vec::new();
    for name in ["a", "b", "c"] {
        cancelled.push(actor.submit(&NewBatch::new(batch(name)), 1).await);
    }
    let held = actor.take(3).await;
    assert_eq!(held.len(), 3, "B4: a claim takes the pieces of several batches");
    for made in &cancelled {
        actor.call_off(made).await;
    }

    assert_applied(&settle_all(&actor, &held, &Disposition::GiveBack).await);

    for made in &cancelled {
        actor.assert_completed(made, BatchOutcome::Cancelled).await;
        assert_eq!(actor.status(made).await.dropped, 1, "B7: the piece of {made}");
    }
}

case!(thousands_are_cancelled: B7 => Batches);
/// A cancelled batch drops thousands of pieces. While it does, no claim gets one of
/// them.
async fn thousands_are_cancelled(store: &Store) {
    let (actor, worker) = (store.actor("o").await, store.actor("w").await);
    let made = actor.make(&telling("b")).await;
    for some in pieces(&made, 2500).chunks(500) {
        actor.fill(&made, some.to_vec()).await;
    }
    actor.close(&made).await;

    let status = actor.call_off(&made).await;

    assert_eq!(
        (status.outcome(), status.dropped),
        (Some(BatchOutcome::Cancelled), 2500)
    );
    let after = drain(&worker).await;
    assert_eq!((after.len(), completed(&after)), (1, 1));
}

case!(a_cancel_after_the_end_changes_nothing: B7 => Batches);
/// A cancel after the batch has ended changes nothing.
async fn a_cancel_after_the_end_changes_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b"), 1).await;
    let held = actor.take_one().await;
    actor.finish(&held).await;
    let record = actor.status(&made).await;
    store.advance(BRIEF).await;

    assert_eq!(actor.call_off(&made).await, record);
    assert_eq!(completed(&drain(&actor).await), 1);
    let cancelled = actor.submit(&telling("c"), 2).await;
    let record = actor.call_off(&cancelled).await;
    assert_eq!(actor.call_off(&cancelled).await, record);
    assert_eq!(completed(&drain(&actor).await), 1);
}

case!(a_cancel_spares_the_others: B7 => Batches);
/// A cancel does not touch other batches of the queue, nor plain jobs.
async fn a_cancel_spares_the_others(store: &Store) {
    let actor = store.actor("worker").await;
    let gone = actor.submit(&NewBatch::new(batch("gone")).limit(limit(1)), 3).await;
    let stays = actor.submit(&NewBatch::new(batch("stays")), 3).await;
    actor.store_one("plain").await;

    actor.call_off(&gone).await;

    let after = drain(&actor).await;
    assert_eq!((after.len(), of(&after, &stays), of(&after, &gone)), (4, 3, 0));
    actor.assert_completed(&stays, BatchOutcome::Done).await;
}

case!(a_cancel_spares_others_of_the_same_id: R1 B7 => Batches ClientIds);
/// A cancel drops only the pieces of its own batch, even if a plain job and a piece of
/// another batch wait under the ids of two leased pieces. (Some backends refuse such
/// ids.)
async fn a_cancel_spares_others_of_the_same_id(store: &Store) {
    let actor = store.actor("worker").await;
    let gone = actor.submit(&NewBatch::new(batch("gone")), 2).await;
    let held = actor.take(2).await;
    let same = |at: usize| NewJob::new("same").id(held[at].job().clone());
    let plain = actor.offer(same(0).delay(BRIEF)).await;
    let other = actor.make(&NewBatch::new(batch("other"))).await;
    let added = actor.batches().add(&other, &[same(1)], None).await;
    let Added::Stored(mut taken) = added.expect("answered") else {
        panic!("the batch is open")
    };
    for piece in actor.take(9).await {
        actor.say(&piece, retry_after(BRIEF)).await;
    }
    taken.push(plain);

    let status = actor.call_off(&gone).await;

    assert_eq!((status.leased, status.dropped), (2, 0));
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;
    let stored = taken.iter().filter(|one| matches!(one, Pushed::Stored(_))).count();
    assert_eq!(drain(&actor).await.len(), stored);
    for one in &held {
        actor.finish(one).await;
    }
    actor.assert_completed(&gone, BatchOutcome::Cancelled).await;
    assert_eq!(actor.status(&gone).await.done, 2);
}

case!(a_last_lease_of_a_cancelled_batch_is_dropped: B7 => Batches);
/// A piece of a cancelled batch whose lease expires is dropped and not buried, even on
/// its last attempt.
async fn a_last_lease_of_a_cancelled_batch_is_dropped(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.make(&telling("b")).await;
    let last = NewJob::new("last").max_attempts(NonZeroU16::MIN);
    actor.fill(&made, [last.clone(), last]).await;
    actor.close(&made).await;
    assert_eq!(actor.take_briefly(2).await.len(), 2);
    actor.call_off(&made).await;
    store.outlast_brief_leases().await;

    assert_eq!(actor.recover_all().await.buried, 0);

    actor.assert_completed(&made, BatchOutcome::Cancelled).await;
    let status = actor.status(&made).await;
    assert_eq!((status.failed, status.dropped), (0, 2));
    let stats = actor.figures().await;
    assert_eq!((stats.dead, stats.cancelled), (0, 2));
    assert_eq!(completed(&drain(&actor).await), 1);
}
