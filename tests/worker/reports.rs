//! Tests of the reports that a worker runs (R33).

use std::{sync::Arc, time::Duration};

use relq::{
    WorkerId,
    operator::REPORT_INTERVAL,
    worker::{CancellationToken, Failure, JobContext},
};
use tokio::sync::Notify;

use crate::{
    blocked_runtime::{BlockingHandlers, block_until},
    clocks::PartingClock,
    faulty::{Fault, Faulty},
    fixture::{Fixture, Running, eventually, worker_on},
    leases::BeatenTime,
};

fn listing(fixture: &Fixture) -> Faulty {
    Faulty::new(fixture.queue.clone()).listing_workers()
}

async fn done(_: JobContext) -> Result<(), Failure> {
    Ok(())
}

/// R33: a worker reports at its start and then every 20 seconds, although it has no job.
/// Each report has its id and the number of its slots.
pub(crate) async fn idle_worker_reports_again_and_again(fixture: Fixture) {
    let (queue, clock) = (Arc::new(listing(&fixture)), PartingClock::default());
    let id = WorkerId::new("reporter").unwrap();
    let worker = worker_on(queue.clone())
        .worker_id(id.clone())
        .concurrency(3.try_into().unwrap())
        .environment(clock.environment());

    let worker = Running::start(worker, done);
    for reports in 1..=3 {
        eventually(|| queue.reports.calls() == reports).await;
        clock.advance(REPORT_INTERVAL / 2);
        assert_eq!(queue.reports.calls(), reports, "half of the interval has passed");
        clock.advance(REPORT_INTERVAL / 2);
    }

    worker.stop().await;
    let reported = queue.reported.lock().unwrap();
    let are_its_own =
        |it: &relq::operator::WorkerReport| it.worker == id && it.slots.get() == 3;
    assert!(reported.iter().all(are_its_own), "{reported:?}");
}

/// R33: a handler that blocks all threads of the runtime holds up no report.
pub(crate) async fn blocked_runtime_reports(fixture: Fixture) {
    fixture.push_many(2).await;
    let (queue, clock) = (Arc::new(listing(&fixture)), PartingClock::default());
    let handlers = BlockingHandlers::new();
    let worker = worker_on(queue.clone())
        .concurrency(2.try_into().unwrap())
        .environment(clock.environment());

    let worker = Running::start(worker, handlers.handler());
    block_until(|| handlers.begun() == 2);
    for _ in 0..2 {
        let before = queue.reports.calls();
        clock.advance(REPORT_INTERVAL);
        block_until(|| queue.reports.calls() > before);
    }

    drop(handlers);
    assert_eq!(worker.stop().await.done, 2);
}

/// R33: reports that fail, or are denied, end neither a job nor the worker.
pub(crate) async fn failed_reports_harm_nothing(fixture: Fixture) {
    let faults = |call: usize, _: usize| {
        Some(if call == 0 { Fault::Panic } else { Fault::Denied })
    };
    let queue = Arc::new(listing(&fixture).on_report(faults));
    let clock = PartingClock::default();
    let worker = worker_on(queue.clone())
        .give_up_after(Duration::from_secs(1))
        .environment(clock.environment());

    let worker = Running::start(worker, done);
    for reports in 1..=3 {
        eventually(|| queue.reports.calls() == reports).await;
        clock.advance(REPORT_INTERVAL);
    }
    fixture.push_many(3).await;
    worker.until(|summary| summary.done == 3).await;

    assert_eq!(worker.stop().await.done, 3);
}

/// R33: while the store does not answer a report, the leases are extended, and no second
/// report is sent.
pub(crate) async fn late_report_delays_no_heartbeat(fixture: Fixture) {
    fixture.push("long").await;
    let release = Arc::new(Notify::new());
    let late = Arc::clone(&release);
    let queue =
        listing(&fixture).on_report(move |_, _| Some(Fault::Late(late.clone())));
    let queue = Arc::new(queue);
    let is_over = CancellationToken::new();
    let over = is_over.clone();

    let time = BeatenTime::default();
    let worker = Running::start(time.worker_on(queue.clone()), move |_: JobContext| {
        let over = over.clone();
        async move {
            over.cancelled().await;
            Ok::<_, Failure>(())
        }
    });
    worker.until_running(1).await;
    time.pass_until(|| queue.reports.calls() == 1 && queue.extensions.calls() >= 3)
        .await;

    is_over.cancel();
    worker.until(|summary| summary.done == 1).await;
    assert_eq!(queue.reports.calls(), 1, "one report at a time");
    let summary = worker.stop().await;
    assert_eq!((summary.done, summary.lost), (1, 0));
    release.notify_waiters();
}

/// R33: a worker that is about to be released reports no more, so it is not listed again.
pub(crate) async fn stopped_worker_reports_no_more(fixture: Fixture) {
    fixture.push("job").await;
    let (queue, clock) = (Arc::new(listing(&fixture)), PartingClock::default());
    let worker = worker_on(queue.clone()).environment(clock.environment());
    let worker = Running::start(worker, done);
    worker.until(|summary| summary.done == 1).await;
    eventually(|| queue.reports.calls() == 1).await;

    worker.stop().await;

    clock.advance(REPORT_INTERVAL * 3);
    assert_eq!(queue.reports.calls(), 1, "no report after the release");
}

/// R33: a worker that was suspended for longer than it is listed reports at once.
pub(crate) async fn worker_reports_after_a_suspend(fixture: Fixture) {
    fixture.push("long").await;
    let (queue, clock) = (Arc::new(listing(&fixture)), PartingClock::default());
    let is_over = CancellationToken::new();
    let over = is_over.clone();
    let worker = worker_on(queue.clone()).environment(clock.environment());
    let worker = Running::start(worker, move |_: JobContext| {
        let over = over.clone();
        async move {
            over.cancelled().await;
            Ok::<_, Failure>(())
        }
    });
    worker.until_running(1).await;
    eventually(|| queue.reports.calls() == 1).await;

    clock.step_wall(REPORT_INTERVAL * 10);

    eventually(|| queue.reports.calls() == 2).await;
    is_over.cancel();
    worker.until(|summary| summary.done == 1).await;
    worker.stop().await;
}

/// R33: a backend that lists no workers gets no report.
pub(crate) async fn backend_without_a_list_gets_no_report(fixture: Fixture) {
    fixture.push("job").await;
    let queue = Faulty::new(fixture.queue.clone()).listing_no_workers();
    let queue = Arc::new(queue);
    let worker = Running::start(worker_on(queue.clone()), done);
    worker.until(|summary| summary.done == 1).await;

    worker.stop().await;

    assert_eq!(queue.reports.calls(), 0);
}
