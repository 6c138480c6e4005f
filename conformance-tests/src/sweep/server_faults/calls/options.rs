//! Makes each kind of call that writes on jobs that have every option of their backend
//! at once.

use std::{sync::Arc, time::Duration};

use relq_core::{
    Delivery, Disposition, NewJob, Queue, WorkerId, capabilities::Capability,
    operator::Selection,
};

use super::{
    super::{
        fixture::{LEASE, ask, eventually, job_id, key, many, worker_id},
        tape::Tape,
    },
    say,
};

pub(super) async fn play(tape: &mut Tape<'_>) {
    return_leased_jobs(tape).await;
    settle(tape).await;
    settle_for_two(tape).await;
    bring_back(tape).await;
    remove(tape).await;
}

/// A job with each option that the backend supports, except a delay. None of its times
/// ends during the test.
fn job(queue: &dyn Queue, name: &'static str) -> NewJob {
    let can = queue.capabilities();
    let mut job =
        NewJob::new(name).priority(*can.priorities.end()).header("name", name);
    if can.supports(Capability::ClientIds) {
        job.id = Some(job_id(name));
    }
    if can.supports(Capability::Unique) {
        job = job.unique(key(name));
    }
    if can.supports(Capability::Expiry) {
        job.expires_in = Some(100 * LEASE);
    }
    if can.supports(Capability::Results) {
        job.keep_result = Some(100 * LEASE);
    }
    job
}

async fn push(tape: &mut Tape<'_>, jobs: &[NewJob]) {
    tape.queue.push(jobs, None).await.expect("pushed");
    tape.mark("push of all options").await;
}

async fn bury(tape: &mut Tape<'_>, held: &Delivery) {
    let dead = Disposition::Dead { error: "never".into() };
    tape.settle(&[say(&held.receipt, dead)]).await;
}

/// Returns jobs to the queue by a release, together with a job that has no option, and by a
/// recovery.
async fn return_leased_jobs(tape: &mut Tape<'_>) {
    let queue = Arc::clone(&tape.queue);
    let names = ["done", "again", "later", "dead", "discarded", "postponed"];
    push(tape, &names.map(|name| job(&*queue, name))).await;
    push(tape, &[NewJob::new("plain")]).await;
    let held = tape.claim(7).await;
    let receipts: Vec<_> = held.iter().map(|one| one.receipt.clone()).collect();
    queue.extend(&worker_id(), &receipts, LEASE * 2).await.expect("extended");
    tape.mark("extend").await;
    if let Some(results) = queue.result_queue() {
        results.report_progress(&receipts[0], b"half").await.expect("reported");
        tape.mark("report progress").await;
    }
    queue.release_worker(&worker_id()).await.expect("left");
    tape.mark("release worker").await;

    let mut brief = ask(1);
    brief.lease = Duration::from_millis(1);
    queue.claim(&brief).await.expect("claimed");
    tape.mark("a brief claim").await;
    eventually("the end of a lease", async || {
        queue.stats().await.expect("answered").overdue == 1
    })
    .await;
    queue.recover(many(100)).await.expect("recovered");
    tape.mark("recover").await;
}

/// Settles the jobs in each way. Leaves two jobs with a delay and a dead one.
async fn settle(tape: &mut Tape<'_>) {
    let held = tape.claim(7).await;
    let again = |after| Disposition::Retry { after, error: "again".into() };
    let ends = held.iter().map(|one| {
        let disposition = match &one.payload[..] {
            b"done" | b"plain" => Disposition::Done,
            b"again" => again(Duration::ZERO),
            b"later" => again(LEASE),
            b"dead" => Disposition::Dead { error: "never".into() },
            b"discarded" => Disposition::Discard,
            _ => Disposition::Postpone { after: LEASE },
        };
        say(&one.receipt, disposition)
    });
    let ends: Vec<_> = ends.collect();
    for end in ends {
        tape.settle(&[end]).await;
    }
    let held = tape.claim(1).await;
    let done = [say(&held[0].receipt, Disposition::Done)];
    let both = tape.queue.settle_and_claim(&done, &ask(1)).await;
    assert!(both.settled.is_ok() && both.claimed.is_ok());
    tape.mark("settle_and_claim").await;
}

/// Settles the jobs of two workers in one call: returns them, fails them, and finishes them.
async fn settle_for_two(tape: &mut Tape<'_>) {
    let queue = Arc::clone(&tape.queue);
    push(tape, &["mine", "theirs"].map(|name| job(&*queue, name))).await;
    let again = Disposition::Retry { after: Duration::ZERO, error: "again".into() };
    for end in [Disposition::GiveBack, again, Disposition::Done] {
        let mut held = tape.claim(1).await;
        let mut theirs = ask(1);
        theirs.worker = WorkerId::new("another").expect("a valid id");
        held.extend(queue.claim(&theirs).await.expect("claimed"));
        tape.mark("claim of another worker").await;
        let ends = held.iter().map(|one| say(&one.receipt, end.clone()));
        tape.settle(&ends.collect::<Vec<_>>()).await;
    }
}

/// Brings jobs back that have waited or died: by a redrive, by hand, and because they
/// are due.
async fn bring_back(tape: &mut Tape<'_>) {
    let queue = Arc::clone(&tape.queue);
    queue.redrive(&Selection::All).await.expect("redriven");
    tape.mark("redrive").await;
    let dead = tape.claim(1).await;
    bury(tape, &dead[0]).await;
    let can = queue.capabilities();
    if !can.supports(Capability::Delay) {
        return;
    }
    if can.supports(Capability::ClientIds)
        && let Some(inspector) = queue.inspect_queue()
    {
        inspector.run_now(&job_id("later")).await.expect("answered");
        tape.mark("run now").await;
    }
    let soon = ["soon", "sooner"]
        .map(|name| job(&*queue, name).delay(Duration::from_millis(1)));
    push(tape, &soon).await;
    let held = tape.claim(2).await;
    for one in &held {
        tape.settle(&[say(&one.receipt, Disposition::Done)]).await;
    }
}

/// Removes jobs in each state, by their ids and all at once.
async fn remove(tape: &mut Tape<'_>) {
    let queue = Arc::clone(&tape.queue);
    if queue.capabilities().supports(Capability::ClientIds) {
        push(tape, &["leased", "ready"].map(|name| job(&*queue, name))).await;
        tape.claim(1).await;
        for id in ["leased", "ready", "postponed"] {
            queue.cancel(&job_id(id)).await.expect("answered");
            tape.mark("cancel").await;
        }
    }
    queue.purge_dead(&Selection::All).await.expect("purged");
    tape.mark("purge_dead").await;
    push(tape, &["held", "waits"].map(|name| job(&*queue, name))).await;
    tape.claim(1).await;
    queue.purge().await.expect("purged");
    tape.mark("purge").await;
}
