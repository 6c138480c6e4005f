//! Each piece of a batch is counted exactly once, however it ends (B2, B8).

use std::time::Duration;

use relq_core::{
    Disposition, NewJob,
    batch::{BatchOutcome, NewBatch},
    operator::{Cancelled, JobState, Selection},
    outcome::Settled,
};

use crate::{
    cases::batches::fixture::{batch, completed, of, telling},
    cases::{
        case,
        times::{TOLERANCE, assert_oldest, assert_pushed_at, now},
    },
    harness::{
        checks::{assert_applied, dead, drain, id, retry_after, retry_now, settle_all},
        store::Store,
        times::{BRIEF, HELD, PAST_BRIEF},
    },
};

case!(every_end_is_counted: B2 B8 R23 => Batches ClientIds);
/// Each piece is counted as done, failed or dropped, depending on how it ended.
async fn every_end_is_counted(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.make(&NewBatch::new(batch("b"))).await;
    let named = NewJob::new("cancelled").id(id("mine"));
    let plain = ["done", "dead", "discarded", "later"].map(NewJob::new);
    actor.fill(&made, plain.into_iter().chain([named])).await;

    let cancelled = actor.cancel(&id("mine")).await.expect("answered");
    assert_eq!(cancelled, Cancelled::Removed(JobState::Ready));
    for one in actor.take(10).await {
        let disposition = match &one.payload[..] {
            b"done" => Disposition::Done,
            b"dead" => dead("no"),
            b"discarded" => Disposition::Discard,
            _ => retry_now(),
        };
        assert_eq!(actor.say(&one, disposition).await, Settled::Applied);
    }

    let status = actor.status(&made).await;
    assert_eq!((status.total, status.done, status.failed), (5, 1, 1));
    assert_eq!((status.dropped, status.waiting, status.leased), (2, 1, 0));
    let stats = actor.figures().await;
    assert_eq!((stats.finished, stats.discarded, stats.cancelled), (1, 1, 1));
}

case!(a_piece_whose_id_another_job_has_counts_once: B2 R4 => Batches ClientIds Delay);
/// A client pushes a delayed job with the id of a leased piece, and then the piece is
/// retried, so that both are scheduled. The piece is still one of its batch, and counts when
/// it is done. (Some backends refuse such an id.)
async fn a_piece_whose_id_another_job_has_counts_once(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&NewBatch::new(batch("b")), 1).await;
    let piece = actor.take_one().await;
    actor.offer(NewJob::new("other").id(piece.job().clone()).delay(HELD)).await;
    actor.say(&piece, retry_after(BRIEF)).await;
    let status = actor.status(&made).await;
    assert_eq!(status.waiting, 1, "B9: a retried piece waits: {status:?}");
    store.advance(PAST_BRIEF).await;
    actor.recover_all().await;

    let again = actor.take_one().await;
    assert_eq!(again.batch, Some(made.clone()), "B9: the retried piece");
    actor.finish(&again).await;

    let status = actor.status(&made).await;
    assert_eq!((status.total, status.done), (1, 1), "B2: {status:?}");
    actor.assert_completed(&made, BatchOutcome::Done).await;
}

case!(a_second_ack_counts_nothing: B2 => Batches);
/// A second ack of a piece does not change the counts of its batch.
async fn a_second_ack_counts_nothing(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b"), 2).await;
    let held = actor.take_one().await;
    actor.finish(&held).await;

    for _ in 0..3 {
        assert_eq!(actor.say(&held, Disposition::Done).await, Settled::LeaseLost);
    }

    let status = actor.status(&made).await;
    assert_eq!((status.done, status.waiting), (1, 1));
    actor.assert_running(&made).await;
}

case!(a_redelivered_piece_counts_once: B2 => Batches);
/// A piece that was delivered twice counts once, when its current holder acks it.
async fn a_redelivered_piece_counts_once(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b"), 2).await;
    let first = actor.take_one_briefly().await;
    store.outlast_brief_leases().await;
    actor.recover_all().await;
    let again = actor.take(2).await;
    assert_eq!(of(&again, &made), 2);

    assert_eq!(actor.say(&first, Disposition::Done).await, Settled::LeaseLost);
    let status = actor.status(&made).await;
    assert_eq!((status.done, status.leased), (0, 2));
    assert_applied(&settle_all(&actor, &again, &Disposition::Done).await);

    assert_eq!(actor.say(&first, Disposition::Done).await, Settled::LeaseLost);
    assert_eq!(actor.status(&made).await.done, 2);
    assert_eq!(completed(&drain(&actor).await), 1);
}

case!(a_buried_piece_has_failed: B8 => Batches);
/// A buried piece counts as failed. A redrive turns it into a plain job.
async fn a_buried_piece_has_failed(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.submit(&telling("b"), 2).await;
    let held = actor.take(2).await;
    actor.finish(&held[0]).await;
    assert_eq!(actor.say(&held[1], dead("no")).await, Settled::Applied);
    actor.assert_completed(&made, BatchOutcome::Failed).await;
    let record = actor.status(&made).await;
    assert_eq!((record.done, record.failed), (1, 1));
    assert_eq!(actor.the_dead_one().await.batch.as_ref(), Some(&made));

    assert_eq!(actor.redrive(&Selection::All).await.expect("answered").moved, 1);
    let after = drain(&actor).await;

    assert_eq!((after.len(), completed(&after), of(&after, &made)), (2, 1, 0));
    assert_eq!(actor.status(&made).await, record);
}

case!(a_piece_out_of_attempts_has_failed: B8 R11 => Batches);
/// A piece whose lease expires on its last attempt counts as failed. If it is the last
/// piece, the batch completes.
async fn a_piece_out_of_attempts_has_failed(store: &Store) {
    let actor = store.actor("worker").await;
    let made = actor.make(&telling("b")).await;
    let last = NewJob::new("poison").max_attempts(std::num::NonZeroU16::MIN);
    actor.fill(&made, [last]).await;
    actor.close(&made).await;
    actor.take_one_briefly().await;
    store.outlast_brief_leases().await;

    assert_eq!(actor.recover_all().await.buried, 1);

    actor.assert_completed(&made, BatchOutcome::Failed).await;
    assert_eq!(actor.status(&made).await.failed, 1);
    assert_eq!(completed(&drain(&actor).await), 1);
}

case!(a_batchs_stats_add_up: B2 => Batches);
/// While several workers run the pieces of a batch, its counts add up to the number of
/// pieces after each operation.
async fn a_batchs_stats_add_up(store: &Store) {
    let (one, two) = (store.actor("w1").await, store.actor("w2").await);
    let made = one.submit(&telling("b"), 40).await;
    for round in 0..6 {
        let (mine, lost) = (one.take(4).await, two.take_briefly(2).await);
        let dispositions = [
            Disposition::Done,
            retry_now(),
            Disposition::GiveBack,
            Disposition::Discard,
        ];
        for (held, disposition) in mine.iter().zip(dispositions) {
            one.say(held, disposition).await;
            one.status(&made).await;
        }
        if round % 2 == 0 {
            two.release_worker(two.worker()).await.expect("answered");
        }
        store.outlast_brief_leases().await;
        one.recover_all().await;
        settle_all(&two, &lost, &Disposition::Done).await;
        one.status(&made).await;
    }

    let rest = drain(&one).await;

    let status = one.status(&made).await;
    assert_eq!((status.done + status.dropped, status.total), (40, 40));
    assert_eq!(completed(&rest), 1);
    one.assert_completed(&made, BatchOutcome::Done).await;
}

case!(pieces_of_batches_do_not_count: B3 R27 => ReadyAge Batches);
/// A piece may wait because of the limit of its batch, which does not mean that workers
/// are late. So the age of the oldest ready job counts plain jobs, but no pieces.
async fn pieces_of_batches_do_not_count(store: &Store) {
    let actor = store.actor("worker").await;
    let pushed = now(store);
    actor.submit(&NewBatch::new(batch("b")), 2).await;
    store.advance(10 * TOLERANCE).await;

    let stats = actor.figures().await;
    assert_eq!((stats.ready, stats.oldest_ready_age), (2, None));
    actor.store_one("job").await;
    assert_oldest(&actor.figures().await, Duration::ZERO);
    for held in actor.take(3).await {
        if held.batch.is_some() {
            assert_pushed_at("a piece", held.enqueued_at, pushed);
        }
    }
}
