//! Makes every kind of call that writes. The tests of power cuts and of overwritten
//! keys use the writes and the scripts that these calls send.

mod batches;
mod followers;
mod inspecting;
mod options;
mod restoring;
mod results;
mod schedules;

use std::{sync::Arc, time::Duration};

use relq_core::{
    Delivery, Disposition, NewJob, Receipt, Settlement, capabilities::Capability,
    operator::Selection,
};

use super::{
    fixture::{
        LEASE, ask, eventually, job_id, many, push_plain, token, with_options,
        worker_id,
    },
    tape::Tape,
};

/// Makes every kind of call that writes at least once.
pub(super) async fn play(tape: &mut Tape<'_>) {
    push(tape).await;
    let held = tape.claim(6).await;
    work(tape, &held).await;
    time_passes(tape).await;
    operate(tape).await;
    tape.topic = "options";
    options::play(tape).await;
    if tape.queue.result_queue().is_some() {
        tape.topic = "results";
        results::play(tape).await;
    }
    if tape.queue.capabilities().supports(Capability::Followers) {
        tape.topic = "followers";
        followers::play(tape).await;
    }
    if tape.queue.inspect_queue().is_some() {
        tape.topic = "inspecting";
        inspecting::play(tape).await;
    }
    if tape.queue.restore_queue().is_some() {
        tape.topic = "restoring";
        restoring::play(tape).await;
    }
    if tape.queue.schedule_queue().is_some() {
        tape.topic = "schedules";
        schedules::play(tape).await;
    }
    if tape.queue.batch_queue().is_some() {
        tape.topic = "batches";
        batches::play(tape).await;
    }
}

async fn push(tape: &mut Tape<'_>) {
    push_plain(&*tape.queue, &["a", "b", "c", "d", "e", "f"]).await;
    tape.mark("push").await;
    let mut jobs = with_options(&*tape.queue);
    if tape.queue.capabilities().supports(Capability::Delay) {
        jobs.push(NewJob::new("soon").delay(Duration::from_millis(1)));
    }
    let token = token(&*tape.queue, "token");
    tape.queue.push(&jobs, token.as_ref()).await.expect("pushed");
    tape.mark("push of options").await;
    let command = tape.fixture.subject.plain_push(&tape.fixture.queue, b"bare");
    let words: Vec<_> = command.iter().map(Vec::as_slice).collect();
    tape.recorded.server.command(&words);
    tape.mark("a client's push").await;
}

async fn work(tape: &mut Tape<'_>, held: &[Delivery]) {
    let receipts: Vec<_> = held.iter().map(|one| one.receipt.clone()).collect();
    let [first, second, third, fourth, rest @ ..] = &receipts[..] else {
        panic!("six jobs are ready");
    };
    tape.settle(&[say(first, Disposition::Done)]).await;
    tape.settle(&[
        say(second, Disposition::Retry { after: LEASE, error: "again".into() }),
        say(third, Disposition::Dead { error: "never".into() }),
        say(fourth, Disposition::Discard),
    ])
    .await;
    tape.queue.extend(&worker_id(), rest, LEASE * 2).await.expect("extended");
    tape.mark("extend").await;
    let both =
        tape.queue.settle_and_claim(&[say(&rest[0], Disposition::Done)], &ask(1)).await;
    assert!(both.settled.is_ok() && both.claimed.is_ok());
    tape.mark("settle_and_claim").await;
    tape.settle(&[say(&rest[1], Disposition::Postpone { after: LEASE })]).await;
    tape.queue.release_worker(&worker_id()).await.expect("left");
    tape.mark("release worker").await;
}

/// Lets a lease end and recovers it, and lets a delayed job become ready.
async fn time_passes(tape: &mut Tape<'_>) {
    let mut brief = ask(1);
    brief.lease = Duration::from_millis(1);
    tape.queue.claim(&brief).await.expect("claimed");
    tape.mark("a brief claim").await;
    let queue = Arc::clone(&tape.queue);
    eventually("the end of a lease", async || {
        queue.stats().await.expect("answered").overdue == 1
    })
    .await;
    tape.queue.recover(many(100)).await.expect("recovered");
    tape.mark("recover").await;
}

async fn operate(tape: &mut Tape<'_>) {
    tape.queue.redrive(&Selection::All).await.expect("redriven");
    tape.mark("redrive").await;
    tape.queue.pause().await.expect("paused");
    tape.mark("pause").await;
    tape.queue.resume().await.expect("resumed");
    tape.mark("resume").await;
    tape.queue.cancel(&job_id("mine")).await.expect("answered");
    tape.mark("cancel").await;
    let held = tape.claim(2).await;
    let dead = Disposition::Dead { error: "never".into() };
    let dead: Vec<_> = held.iter().map(|one| say(&one.receipt, dead.clone())).collect();
    tape.settle(&dead).await;
    tape.queue.purge_dead(&Selection::All).await.expect("purged");
    tape.mark("purge_dead").await;
    tape.queue.purge().await.expect("purged");
    tape.mark("purge").await;
    finish_the_last(tape).await;
}

/// Finishes a job by a call that finds no other to claim.
async fn finish_the_last(tape: &mut Tape<'_>) {
    push_plain(&*tape.queue, &["last"]).await;
    tape.mark("push").await;
    let held = tape.claim(1).await;
    let done = [say(&held[0].receipt, Disposition::Done)];
    let both = tape.queue.settle_and_claim(&done, &ask(1)).await;
    assert!(both.settled.is_ok());
    assert_eq!(both.claimed.expect("claimed").len(), 0);
    tape.mark("settle_and_claim").await;
}

pub(super) fn say(receipt: &Receipt, disposition: Disposition) -> Settlement {
    Settlement::new(receipt.clone(), disposition)
}
