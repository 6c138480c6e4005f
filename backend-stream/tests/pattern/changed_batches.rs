//! Tests in which other clients change batches. The queue must recover from each change.

use std::num::NonZeroU32;

use relq_conformance::server::Server;
use relq_core::{
    batch::{BatchId, BatchOutcome, BatchQueue, NewBatch},
    operator::{JobState, PeekRequest},
    *,
};

use crate::{
    batches::{fill_outbox, id, in_outbox, status, submit},
    fixture::*,
};

/// B5, B8: if another client deletes pieces, they become dead letters, and their batch
/// still completes.
#[tokio::test]
async fn deleted_pieces_have_failed_and_the_batch_ends() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 30).await;
    let held = abandon(&queue).await;
    say(&server, "XTRIM {q}:batch:pieces:b MAXLEN 0");

    let start = std::time::Instant::now();
    while status(&queue).await.outcome().is_none() {
        queue.recover(many(10)).await.unwrap();
        assert!(start.elapsed() < LONG, "{:?}", status(&queue).await);
    }

    let status = status(&queue).await;
    assert_eq!((status.outcome(), status.failed), (Some(BatchOutcome::Failed), 30));
    let dead = dead(&queue).await;
    assert_eq!(dead.len(), 30);
    assert!(dead.iter().any(|(job, _)| *job == held.job().to_string()));
    assert_sound(&queue).await;
}

/// B5, B10: a recovery looks at some batches. One that comes behind many others, which go on,
/// has its turn, too.
#[tokio::test]
async fn deleted_pieces_of_a_late_batch_are_found() {
    const OTHERS: usize = 30;
    let server = Server::start();
    let queue = open(&server, "q").await;
    for number in 0..OTHERS {
        let other = BatchId::new(format!("other-{number}")).unwrap();
        submit(&queue, NewBatch::new(other), 1).await;
    }
    submit(&queue, NewBatch::new(id()), 2).await;
    say(&server, "XTRIM {q}:batch:pieces:b MAXLEN 0");

    let start = std::time::Instant::now();
    while status(&queue).await.outcome().is_none() {
        queue.recover(many(10)).await.unwrap();
        assert!(start.elapsed() < LONG, "{:?}", status(&queue).await);
    }

    assert_eq!(status(&queue).await.failed, 2);
    assert_eq!(queue.stats().await.unwrap().ready, OTHERS as u64);
}

/// R31: a listing goes on behind the last job that it has shown, although a batch before it
/// has ended meanwhile.
#[tokio::test]
async fn a_listing_goes_on_when_an_earlier_batch_has_ended() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let names = ["first", "second", "third"];
    for name in names {
        submit(&queue, NewBatch::new(BatchId::new(name).unwrap()), 2).await;
    }
    let ask = PeekRequest::new(JobState::Ready, many(3));
    let page = queue.peek(&ask).await.unwrap();
    assert_eq!(page.jobs.len(), 3);

    queue.cancel_batch(&BatchId::new("first").unwrap()).await.unwrap();

    let rest = queue.peek(&ask.after(page.next.unwrap())).await.unwrap();
    let batches = rest.jobs.iter().map(|job| job.batch.as_ref().unwrap().as_str());
    assert_eq!(batches.collect::<Vec<_>>(), ["second", "third", "third"]);
}

/// B6, B8: a batch whose pieces were deleted before a claim has ended. It leaves only its
/// record, and a claim creates no other key.
#[tokio::test]
async fn an_ended_batch_of_deleted_pieces_is_its_record() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 1).await;
    say(&server, "XTRIM {q}:batch:pieces:b MAXLEN 0");
    let start = std::time::Instant::now();
    while status(&queue).await.outcome().is_none() {
        queue.recover(many(10)).await.unwrap();
        assert!(
            start.elapsed() < LONG,
            "B8: it does not end: {:?}",
            status(&queue).await
        );
    }

    assert_eq!(queue.claim_one(&ask("w")).await.unwrap(), None);

    let of_batches = keys(&server).into_iter().filter(|key| key.contains(":batch:"));
    let expected =
        ["ended", "ids", "record:b", "told"].map(|it| format!("{{q}}:batch:{it}"));
    assert_eq!(of_batches.collect::<Vec<_>>(), expected, "B6: the keys of the batch");
}

/// B4: another client has moved the group past a piece, which is never delivered then. A
/// claim does not look for the piece again and again, and finds the piece of another batch.
#[tokio::test]
async fn a_piece_that_is_never_delivered_holds_up_no_claim() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 1).await;
    let other = BatchId::new("other").unwrap();
    submit(&queue, NewBatch::new(other.clone()), 1).await;
    say(&server, "XGROUP CREATE {q}:batch:pieces:b relq $");

    let taken = queue.claim(&ask("w").max(many(2))).await.unwrap();

    let batches: Vec<_> = taken.into_iter().map(|one| one.batch).collect();
    assert_eq!(batches, [Some(other)], "B4: the batches of the claimed pieces");
}

/// B4: a returned piece that was deleted does not block the other pieces of its batch.
#[tokio::test]
async fn a_deleted_piece_that_came_back_hides_no_other() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 2).await;
    let held = take_one(&queue).await;
    queue.give_back(&held.receipt).await.unwrap();
    say(&server, "XTRIM {q}:batch:pieces:b MAXLEN 1");

    let next = queue.claim_one(&ask("w")).await.unwrap();

    assert_eq!(next.expect("the other is claimable").payload, "1");
}

/// B5: a completion job that cannot be read does not block the others in the outbox.
#[tokio::test]
async fn a_damaged_completion_holds_up_no_other() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    fill_outbox(&server, &queue, 3).await;
    say(&server, "HDEL {q}:batch:record:b1 completion_queue");

    queue.recover(many(10)).await.unwrap();

    assert_eq!(in_outbox(&server), 1);
    assert_eq!(open(&server, "there").await.stats().await.unwrap().ready, 2);
}

/// B5: one call of recovery pushes a backlog of completion jobs to their queues,
/// although a damaged one stays in the outbox.
#[tokio::test]
async fn a_backlog_goes_on_beside_a_damaged_completion() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    fill_outbox(&server, &queue, 40).await;
    say(&server, "HDEL {q}:batch:record:b1 completion_queue");

    let mut recoveries = 1;
    while queue.recover(many(10)).await.unwrap().more {
        recoveries += 1;
        assert!(recoveries < 40, "the damaged one is tried again and again");
    }

    assert!(in_outbox(&server) <= 10, "{} are left", in_outbox(&server));
}

/// R1, B3: if the leases of held pieces are missing, the pieces become ready again, and
/// their slots become free.
#[tokio::test]
async fn pieces_held_without_a_lease_come_back() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()).limit(NonZeroU32::new(2)), 3).await;
    take(&queue, 2).await;
    say(&server, "DEL {q}:leased");
    assert_eq!(queue.claim_one(&ask("w")).await.unwrap(), None);

    queue.recover(many(10)).await.unwrap();

    let held = take(&queue, 2).await;
    finish(&queue, held).await;
    let held = take(&queue, 1).await;
    finish(&queue, held).await;
    assert_eq!(status(&queue).await.outcome(), Some(BatchOutcome::Done));
    assert_sound(&queue).await;
}

/// R1, B3: the same holds for pieces of several pages. Until all are ready, a recovery
/// reports that there are more.
#[tokio::test]
async fn pieces_held_without_a_lease_come_back_by_pages() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 5).await;
    take(&queue, 5).await;
    say(&server, "DEL {q}:leased");

    let mut pages = 1;
    while queue.recover(many(2)).await.unwrap().more {
        pages += 1;
        assert!(pages < 10, "R1: the recovery does not end");
    }

    let held = take(&queue, 5).await;
    finish(&queue, held).await;
    assert_eq!(status(&queue).await.outcome(), Some(BatchOutcome::Done));
    assert_sound(&queue).await;
}

/// R1: a piece without a lease comes back also if it stands behind pieces with a lease,
/// however few pieces one recovery looks for.
#[tokio::test]
async fn a_piece_without_a_lease_is_found_behind_leased_ones() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 3).await;
    for _ in 0..3 {
        take(&queue, 1).await;
    }
    say(&server, "ZPOPMAX {q}:leased");

    while queue.recover(many(1)).await.unwrap().more {}

    assert_eq!(queue.stats().await.unwrap().leased, 2);
    take(&queue, 1).await;
    assert_sound(&queue).await;
}

/// B3, B8: if the entries of held pieces are deleted and their leases are missing, the
/// slots become free, and the pieces are counted as failed.
#[tokio::test]
async fn entries_deleted_with_their_leases_free_their_slots() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()).limit(NonZeroU32::new(2)), 3).await;
    take(&queue, 2).await;
    say(&server, "DEL {q}:leased");
    say(&server, "XTRIM {q}:batch:pieces:b MAXLEN 1");

    queue.recover(many(10)).await.unwrap();

    let held = take(&queue, 1).await;
    finish(&queue, held).await;
    while queue.recover(many(10)).await.unwrap().more {}
    let status = status(&queue).await;
    assert_eq!((status.outcome(), status.failed), (Some(BatchOutcome::Failed), 2));
    assert_sound(&queue).await;
}

/// B7: a cancelled batch completes even if another client has deleted its leases.
#[tokio::test]
async fn a_cancelled_batch_without_its_leases_ends() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 3).await;
    take(&queue, 2).await;
    queue.cancel_batch(&id()).await.unwrap();
    say(&server, "DEL {q}:leased");

    while queue.recover(many(10)).await.unwrap().more {}

    let status = status(&queue).await;
    assert_eq!((status.outcome(), status.dropped), (Some(BatchOutcome::Cancelled), 3));
    assert_sound(&queue).await;
}

/// R21: another client has put a key of another type in place of a batch's pieces. A call
/// that reads the batch fails, and does not show that no piece is leased.
#[tokio::test]
async fn a_batch_of_overwritten_pieces_is_not_shown() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 1).await;
    take_one(&queue).await;
    say(&server, "SET {q}:batch:pieces:b theirs");

    let error = queue.batch(&id()).await.unwrap_err();

    let message = error.full_message();
    assert!(matches!(error, Error::Unusable { .. }), "R21: {message}");
}

/// R23, B2: an audit reports a batch whose total is not the sum of its other counts.
#[tokio::test]
async fn an_audit_finds_counts_that_do_not_add_up() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    submit(&queue, NewBatch::new(id()), 1).await;
    assert_sound(&queue).await;
    say(&server, "HINCRBY {q}:batch:record:b total 1");

    let problems = problems(&queue).await;

    assert_eq!(problems, ["the counts of batch b do not add up to its total"]);
}

/// B5, R21: a recovery says that there is more only if another call can do something. It does
/// not for completion jobs that their queue refuses.
#[tokio::test]
async fn a_refused_outbox_does_not_keep_recoveries_busy() {
    const LETTERS: u32 = 300;
    let server = Server::start();
    let queue = open(&server, "q").await;
    fill_outbox(&server, &queue, LETTERS).await;
    say(&server, "SET there foreign");

    let mut calls = 1;
    while queue.recover(many(10)).await.unwrap().more {
        calls += 1;
        assert!(calls < 100, "there is always more");
    }

    assert_eq!(in_outbox(&server), u64::from(LETTERS));
}
