//! Makes every kind of call that writes a batch, on a queue that holds nothing else.

use std::{sync::Arc, time::Duration};

use relq_core::{
    Disposition, NewJob, Receipt,
    batch::{BatchOutcome, BatchPriority, Change, NewBatch},
    operator::Selection,
    outcome::Extended,
};

use super::{
    super::{
        batches::{batches, named, plain, status, telling},
        fixture::{LEASE, ask, eventually, job_id, many, token, worker_id},
        tape::Tape,
    },
    say,
};

pub(super) async fn play(tape: &mut Tape<'_>) {
    empty(tape).await;
    work(tape).await;
    come_back(tape).await;
    steer(tape).await;
    call_off(tape).await;
    forget(tape).await;
}

/// The same as [`batches::submit`](super::super::batches::submit), with a [`Mark`]
/// recorded after each call.
async fn submit(tape: &mut Tape<'_>, new: &NewBatch, pieces: &[&'static str]) {
    let queue = Arc::clone(&tape.queue);
    batches(&*queue).create(new).await.expect("made");
    tape.mark("create").await;
    let token = token(&*queue, new.id.as_str());
    let added = batches(&*queue).add(&new.id, &plain(pieces), token.as_ref()).await;
    added.expect("added");
    tape.mark("push of pieces").await;
    batches(&*queue).seal(&new.id).await.expect("sealed");
    tape.mark("seal").await;
}

async fn is_over(tape: &Tape<'_>, id: &str, outcome: BatchOutcome) {
    assert_eq!(status(&*tape.queue, id).await.outcome(), Some(outcome));
}

/// Seals an empty batch, which completes it. [`forget`] removes its record later.
async fn empty(tape: &mut Tape<'_>) {
    let brief = telling("empty", 1).retention(NewBatch::MIN_RETENTION);
    submit(tape, &brief, &[]).await;
    is_over(tape, "empty", BatchOutcome::Done).await;
}

/// Settles pieces of a batch in every way that a worker has.
async fn work(tape: &mut Tape<'_>) {
    submit(tape, &telling("worked", 2), &["one", "two", "three", "four"]).await;
    let held = tape.claim(2).await;
    let receipts: Vec<_> = held.iter().map(|one| one.receipt.clone()).collect();
    tape.queue.extend(&worker_id(), &receipts, LEASE * 2).await.expect("extended");
    tape.mark("extend pieces").await;
    let again = Disposition::Retry { after: Duration::ZERO, error: "again".into() };
    tape.settle(&[say(&receipts[0], Disposition::Done), say(&receipts[1], again)])
        .await;
    let held = tape.claim(1).await;
    let later = Disposition::Postpone { after: Duration::ZERO };
    tape.settle(&[say(&held[0].receipt, later)]).await;
    let held = tape.claim(1).await;
    let both = tape
        .queue
        .settle_and_claim(&[say(&held[0].receipt, Disposition::Discard)], &ask(2))
        .await;
    let held = both.claimed.expect("claimed");
    assert_eq!(held.len(), 2, "each slot is free");
    tape.mark("settle_and_claim on pieces").await;
    let dead = Disposition::Dead { error: "never".into() };
    tape.settle(&[
        say(&held[0].receipt, Disposition::Done),
        say(&held[1].receipt, dead),
    ])
    .await;
    is_over(tape, "worked", BatchOutcome::Failed).await;
    tape.queue.redrive(&Selection::All).await.expect("redriven");
    tape.mark("redrive of a piece").await;
    let held = tape.claim(1).await;
    tape.settle(&[say(&held[0].receipt, Disposition::Done)]).await;
}

/// Returns two pieces to their batch: one because its worker is released, and one
/// because its lease expires.
async fn come_back(tape: &mut Tape<'_>) {
    submit(tape, &telling("returned", 1), &["left", "lost"]).await;
    tape.claim(1).await;
    tape.queue.release_worker(&worker_id()).await.expect("left");
    tape.mark("release with a piece").await;
    let mut brief = ask(1);
    brief.lease = Duration::from_millis(1);
    tape.queue.claim(&brief).await.expect("claimed");
    tape.mark("a brief claim of a piece").await;
    let queue = Arc::clone(&tape.queue);
    eventually("the end of a lease", async || {
        queue.stats().await.expect("answered").overdue == 1
    })
    .await;
    tape.queue.recover(many(100)).await.expect("recovered");
    tape.mark("recover a piece").await;
    for _ in 0..2 {
        let held = tape.claim(1).await;
        tape.settle(&[say(&held[0].receipt, Disposition::Done)]).await;
    }
    is_over(tape, "returned", BatchOutcome::Done).await;
}

/// Brings pieces of an open batch back: one that waits for its retry is run at once,
/// another becomes due, and a dead one is redriven. Then cancels a leased piece, one that
/// waits, and the batch.
async fn steer(tape: &mut Tape<'_>) {
    let queue = Arc::clone(&tape.queue);
    let steered = telling("steered", 4);
    batches(&*queue).create(&steered).await.expect("made");
    tape.mark("create").await;
    let names = ["run now", "due", "dead", "waits"];
    let pieces =
        names.map(|name| NewJob::new(name).id(job_id(name)).keep_result(LEASE));
    batches(&*queue).add(&steered.id, &pieces, None).await.expect("added");
    tape.mark("push of pieces").await;
    let again = |after| Disposition::Retry { after, error: "again".into() };
    for one in tape.claim(4).await {
        let end = match &one.payload[..] {
            b"due" => again(Duration::ZERO),
            b"dead" => Disposition::Dead { error: "never".into() },
            _ => again(LEASE),
        };
        tape.settle(&[say(&one.receipt, end)]).await;
    }
    queue.redrive(&Selection::All).await.expect("redriven");
    tape.mark("redrive of a piece").await;
    for _ in 0..2 {
        let held = tape.claim(1).await;
        tape.settle(&[say(&held[0].receipt, Disposition::Done)]).await;
    }
    if let Some(inspector) = queue.inspect_queue() {
        inspector.run_now(&job_id("run now")).await.expect("answered");
        tape.mark("run a piece now").await;
    }
    tape.claim(1).await;
    for id in ["run now", "waits"] {
        queue.cancel(&job_id(id)).await.expect("answered");
        tape.mark("cancel of a piece").await;
    }
    batches(&*queue).cancel_batch(&steered.id).await.expect("cancelled");
    tape.mark("cancel a batch").await;
    is_over(tape, "steered", BatchOutcome::Cancelled).await;
}

/// Cancels a batch. That drops the waiting pieces. The next heartbeat of its worker
/// drops the leased piece.
async fn call_off(tape: &mut Tape<'_>) {
    submit(tape, &telling("cancelled", 1), &["begun", "not begun"]).await;
    let queue = Arc::clone(&tape.queue);
    let change = Change::default().priority(BatchPriority::HIGHEST);
    batches(&*queue).alter(&named("cancelled"), &change).await.expect("altered");
    tape.mark("alter").await;
    let held = tape.claim(1).await;
    batches(&*queue).cancel_batch(&named("cancelled")).await.expect("cancelled");
    tape.mark("cancel a batch").await;
    let receipts: [Receipt; 1] = [held[0].receipt.clone()];
    let told = queue.extend(&worker_id(), &receipts, LEASE).await.expect("extended");
    assert_eq!(told, [Extended::Cancelled]);
    tape.mark("extend a cancelled piece").await;
    is_over(tape, "cancelled", BatchOutcome::Cancelled).await;
}

/// Lets the retention of the first batch end, and recovers, which removes its record.
async fn forget(tape: &mut Tape<'_>) {
    let queue = Arc::clone(&tape.queue);
    let first = named("empty");
    eventually("the end of a record", async || {
        queue.recover(many(100)).await.expect("recovered");
        batches(&*queue).batch(&first).await.expect("answered").is_none()
    })
    .await;
    tape.mark("recover with an old batch").await;
}
