//! Batches and followers: pieces and completion jobs can be leaders, and a follower can
//! wait for a whole batch (R30, B5, B7, B8).

use relq_core::{
    Disposition, JobId, NewJob,
    batch::{Added, BatchId, NewBatch, OnComplete},
    operator::Selection,
};

use super::fixture::following;
use crate::{
    cases::case,
    harness::{
        actor::Actor,
        checks::{dead, postpone, retry_after, retry_now},
        store::Store,
        times::HELD,
    },
};

/// Creates a batch of pieces that keep their results, and so can be followed. Returns the
/// ids of the pieces.
async fn submit(actor: &Actor, pieces: &[&'static str]) -> (BatchId, Vec<JobId>) {
    let batch = BatchId::new("b").expect("a valid id");
    actor.make(&NewBatch::new(batch.clone())).await;
    let pieces: Vec<_> =
        pieces.iter().map(|piece| NewJob::new(*piece).keep_result(HELD)).collect();
    let batches = actor.batch_queue().expect("the backend supports batches");
    let added = batches.add(&batch, &pieces, None).await.expect("answered");
    actor.close(&batch).await;
    match added {
        Added::Stored(pushed) => {
            (batch, pushed.iter().map(|one| one.job().clone()).collect())
        }
        other => panic!("not added: {other:?}"),
    }
}

/// Pushes a follower of each of the jobs, with the leader's number as its payload.
async fn follow_each(actor: &Actor, leaders: &[JobId]) {
    for (number, leader) in (1..).zip(leaders) {
        actor.store_one(following(leader.as_str(), format!("follower {number}"))).await;
    }
}

case!(a_piece_can_be_followed: R30 B2 => Followers Results Batches);
/// The follower of a piece is ready when the piece is done, and is cancelled when it is
/// discarded. A dead piece holds its follower.
async fn a_piece_can_be_followed(store: &Store) {
    let actor = store.actor("worker").await;
    let (_, pieces) = submit(&actor, &["done", "discarded", "dead"]).await;
    follow_each(&actor, &pieces).await;
    let held = actor.take(3).await;
    assert_eq!(held.len(), 3, "B1");

    for piece in held {
        match &piece.payload[..] {
            b"done" => actor.finish(&piece).await,
            b"discarded" => actor.ends(&piece, Disposition::Discard).await,
            _ => actor.ends(&piece, dead("no")).await,
        }
    }

    actor.assert_served(["follower 1"]).await;
    actor.assert_held([(pieces[2].as_str(), "follower 3")]).await;
    assert_eq!(actor.figures().await.cancelled, 1, "R30 R23");
}

case!(a_redriven_piece_still_holds_its_follower: R30 B8 => Followers Results Batches);
/// A dead piece that is redriven is a plain job. Its follower is ready once it is done.
async fn a_redriven_piece_still_holds_its_follower(store: &Store) {
    let actor = store.actor("worker").await;
    let (_, pieces) = submit(&actor, &["piece"]).await;
    follow_each(&actor, &pieces).await;
    actor.ends(&actor.take_one().await, dead("no")).await;
    actor.redrive(&Selection::All).await.expect("answered");
    actor.assert_held([(pieces[0].as_str(), "follower 1")]).await;

    actor.finish(&actor.take_one().await).await;

    actor.assert_served(["follower 1"]).await;
}

case!(the_followers_of_dropped_pieces_are_cancelled: R30 B7 => Followers Results Batches);
/// A cancelled batch drops its ready and scheduled pieces at once, and its leased pieces
/// with their next heartbeat, settlement or recovery. Their followers are cancelled.
async fn the_followers_of_dropped_pieces_are_cancelled(store: &Store) {
    let actor = store.actor("worker").await;
    let names = [
        "beats",
        "is given back",
        "fails",
        "fails now",
        "is postponed",
        "expires",
        "is tried again",
        "waits",
    ];
    let (batch, pieces) = submit(&actor, &names).await;
    follow_each(&actor, &pieces).await;
    let mut held = actor.take(5).await;
    actor.take_one_briefly().await;
    let tried = actor.take_one().await;
    actor.say(&tried, retry_after(2 * HELD)).await;

    actor.call_off(&batch).await;
    store.outlast_brief_leases().await;
    let beats = held.remove(0);
    actor.keep(&beats, HELD).await.expect("answered");
    let says = [Disposition::GiveBack, retry_after(HELD), retry_now(), postpone(HELD)];
    for (piece, disposition) in held.iter().zip(says) {
        actor.ends(piece, disposition).await;
    }

    actor.assert_none_ready("each piece was dropped").await;
    let stats = actor.figures().await;
    assert_eq!((stats.unfinished(), stats.dead), (0, 0), "R30 B7");
    assert_eq!(stats.cancelled, 16, "R30 R23: eight pieces and their followers");
}

case!(a_completion_job_can_be_followed: R30 B5 => Followers Results Batches);
/// The completion job of a batch can be followed once it is pushed, if its result is kept.
/// So a job can wait for all pieces of a batch.
async fn a_completion_job_can_be_followed(store: &Store) {
    let actor = store.actor("worker").await;
    let batch = BatchId::new("b").expect("a valid id");
    let last = OnComplete::new(NewJob::new("complete").keep_result(HELD));
    actor.make(&NewBatch::new(batch.clone()).on_complete(last)).await;
    actor.fill(&batch, ["1", "2"]).await;
    actor.close(&batch).await;
    let held = actor.take(2).await;
    actor.finish(&held[0]).await;
    actor.ends(&held[1], dead("no")).await;
    let complete = actor.take_one().await;
    assert_eq!(complete.payload, "complete", "B5");

    actor.store_one(following(complete.job().as_str(), "follower")).await;

    actor.assert_held([(complete.job().as_str(), "follower")]).await;
    actor.finish(&complete).await;
    actor.assert_served(["follower"]).await;
}
