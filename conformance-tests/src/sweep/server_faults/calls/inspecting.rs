//! Makes every kind of call that runs a job now, or reports a worker.

use std::num::NonZeroU32;

use relq_core::{
    Disposition, NewJob,
    operator::{RunNow, WorkerReport},
    outcome::Pushed,
};

use super::{
    super::{
        fixture::{LEASE, worker_id},
        tape::Tape,
    },
    say,
};

pub(super) async fn play(tape: &mut Tape<'_>) {
    run_now(tape).await;
    report(tape).await;
}

/// Runs a delayed job now.
async fn run_now(tape: &mut Tape<'_>) {
    let later = NewJob::new("later").delay(LEASE);
    let pushed = tape.queue.push(&[later], None).await.expect("pushed").remove(0);
    let Pushed::Stored(job) = pushed else { panic!("not stored: {pushed:?}") };
    tape.mark("push of a delayed job").await;
    let inspector = tape.queue.inspect_queue().expect("it was asked");
    assert_eq!(inspector.run_now(&job).await.expect("answered"), RunNow::Ready);
    tape.mark("run now").await;
    let held = tape.claim(1).await;
    tape.settle(&[say(&held[0].receipt, Disposition::Done)]).await;
}

/// Reports a worker twice, and removes it from the list by a release and by a purge.
async fn report(tape: &mut Tape<'_>) {
    let report = WorkerReport::new(worker_id(), NonZeroU32::MIN);
    for what in ["first report", "second report"] {
        tape.queue.report_worker(&report).await.expect("reported");
        tape.mark(what).await;
    }
    tape.queue.release_worker(&worker_id()).await.expect("left");
    tape.mark("release of a reported worker").await;
    tape.queue.report_worker(&report).await.expect("reported");
    tape.mark("report after a release").await;
    tape.queue.purge().await.expect("purged");
    tape.mark("purge of a report").await;
}
