//! Tests that the result of a handler decides what happens to its job.

use std::{
    num::NonZeroU16,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use relq::{
    NewJob, ReliableQueueExt,
    worker::{Failure, JobContext, MAX_ERROR_BYTES, json, json_job},
};

use crate::fixture::{Fixture, Running};

fn job_of_attempts(payload: &'static str, attempts: u16) -> NewJob {
    NewJob::new(payload).max_attempts(NonZeroU16::new(attempts).unwrap())
}

/// R8: only the result `Ok` acknowledges a job.
pub(crate) async fn success_acks(fixture: Fixture) {
    fixture.push_many(3).await;

    let worker = fixture.start(async |_: JobContext| Ok::<_, Failure>(()));
    fixture.until(|stats| stats.finished == 3).await;

    assert_eq!(worker.stop().await.done, 3);
    assert_eq!(fixture.stats().await.unfinished(), 0);
}

/// R1: a failed job is run again until it succeeds.
pub(crate) async fn failure_is_retried(fixture: Fixture) {
    fixture.push("flaky").await;

    let worker = fixture.start(
        async |job: JobContext| {
            if job.attempt() < 3 { Err("not yet") } else { Ok(()) }
        },
    );
    worker.until(|summary| summary.done == 1).await;

    let summary = worker.stop().await;
    assert_eq!((summary.retried, summary.dead), (2, 0));
}

/// R14: a failed job is retried after the delay that the handler's `Failure` asks for.
pub(crate) async fn retry_waits_as_long_as_the_handler_says(fixture: Fixture) {
    fixture.push("busy").await;

    let worker = fixture.start(async |_: JobContext| {
        Err::<(), _>(Failure::retry_after(Duration::from_secs(3600), "busy"))
    });
    fixture.until(|stats| stats.scheduled == 1).await;
    worker.stop().await;

    let due_in = fixture.stats().await.next_due_in.unwrap();
    assert!(due_in > Duration::from_secs(3500), "{due_in:?}");
}

/// R11: a handler that panics counts as failed, and its job is not acknowledged
/// (sidekiq#2531).
pub(crate) async fn panic_is_a_failure_whose_message_is_kept(fixture: Fixture) {
    fixture.push(job_of_attempts("bomb", 2)).await;

    let worker = fixture.start(async |job: JobContext| -> Result<(), Failure> {
        panic!("boom at attempt {}", job.attempt())
    });
    fixture.until(|stats| stats.dead == 1).await;

    let summary = worker.stop().await;
    assert_eq!((summary.done, summary.retried, summary.dead), (0, 1, 1));
    let dead = fixture.dead().await;
    let error = dead[0].last_error.as_deref();
    assert_eq!(error, Some("the handler panicked: boom at attempt 2"));
}

/// R11: an attempt that exceeds the time limit counts as failed.
pub(crate) async fn timeout_is_a_failure_whose_message_is_kept(fixture: Fixture) {
    fixture.push(job_of_attempts("endless", 1)).await;

    let worker = fixture.worker().timeout(Duration::from_millis(30));
    let worker = Running::start(worker, async |_: JobContext| {
        std::future::pending::<Result<(), Failure>>().await
    });
    fixture.until(|stats| stats.dead == 1).await;

    worker.stop().await;
    let dead = fixture.dead().await;
    let error = dead[0].last_error.as_deref();
    assert_eq!(error, Some("the handler took longer than its limit of 30ms"));
}

#[derive(serde::Serialize, serde::Deserialize)]
struct Resize {
    width: u32,
}

/// R3: a job whose payload cannot be decoded into the handler's type fails at each
/// attempt, and is then buried with its unchanged payload.
pub(crate) async fn unreadable_payload_ends_dead_with_its_bytes(fixture: Fixture) {
    fixture.push(json_job(&Resize { width: 7 }).unwrap()).await;
    fixture.push(job_of_attempts("{\"width\":\"x\"}", 2)).await;

    let worker = fixture.start(json(async |resize: Resize, _: JobContext| {
        if resize.width == 7 { Ok(()) } else { Err("another width") }
    }));
    fixture.until(|stats| stats.dead == 1 && stats.finished == 1).await;

    worker.stop().await;
    let dead = fixture.dead().await;
    let error = dead[0].last_error.as_deref().unwrap();
    assert!(error.starts_with("the payload is not JSON of "), "{error}");
    assert_eq!((&dead[0].payload[..], dead[0].attempt), (&b"{\"width\":\"x\"}"[..], 2));
}

/// A handler can bury a job at once, without further attempts.
pub(crate) async fn hopeless_failure_is_buried_at_once(fixture: Fixture) {
    fixture.push("no such user").await;

    let worker = fixture.start(async |_: JobContext| {
        Err::<(), _>(Failure::dead("there is no such user"))
    });
    fixture.until(|stats| stats.dead == 1).await;

    assert_eq!(worker.stop().await.dead, 1);
    let dead = fixture.dead().await;
    assert_eq!(dead[0].last_error.as_deref(), Some("there is no such user"));
    assert_eq!(dead[0].attempt, 1);
}

/// A job that its handler discards is removed and leaves no dead letter.
pub(crate) async fn discarded_job_is_gone(fixture: Fixture) {
    fixture.push("outdated").await;

    let worker =
        fixture.start(async |_: JobContext| Err::<(), _>(Failure::discard("outdated")));
    worker.until(|summary| summary.discarded == 1).await;

    worker.stop().await;
    let stats = fixture.stats().await;
    assert_eq!((stats.discarded, stats.dead, stats.unfinished()), (1, 0, 0));
}

/// R26: a postponed job runs again later. No attempt is counted, so even a job with only
/// one attempt is not buried.
pub(crate) async fn postponed_job_runs_again_uncounted(fixture: Fixture) {
    fixture.push(job_of_attempts("limited", 1)).await;
    let runs = Arc::new(AtomicUsize::new(0));

    let counted = Arc::clone(&runs);
    let worker = fixture.start(move |job: JobContext| {
        let is_limited = counted.fetch_add(1, SeqCst) < 2;
        async move {
            assert_eq!(job.attempt(), 1);
            let limited = || Failure::postpone(Duration::from_millis(5), "too many");
            if is_limited { Err(limited()) } else { Ok(()) }
        }
    });
    worker.until(|summary| summary.done == 1).await;

    let summary = worker.stop().await;
    assert_eq!((summary.postponed, summary.retried, summary.dead), (2, 0, 0));
    assert_eq!(runs.load(SeqCst), 3);
}

/// An error message that is too long to store is cut, and the job is buried with it.
pub(crate) async fn long_error_is_cut(fixture: Fixture) {
    fixture.push(job_of_attempts("chatty", 1)).await;

    let worker = fixture.start(async |_: JobContext| Err::<(), _>("é".repeat(1 << 20)));
    fixture.until(|stats| stats.dead == 1).await;

    worker.stop().await;
    let dead = fixture.dead().await;
    let error = dead[0].last_error.as_deref().unwrap();
    assert_eq!(error, "é".repeat(MAX_ERROR_BYTES / 2));
}

/// The already-done check runs when a job is redelivered, and not at its first
/// delivery.
pub(crate) async fn done_work_is_acked_on_redelivery_without_running(fixture: Fixture) {
    fixture.push("paid").await;
    let (runs, checks) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
    let (ran, checked) = (Arc::clone(&runs), Arc::clone(&checks));

    let worker = fixture.worker().already_done(move |_: JobContext| {
        checked.fetch_add(1, SeqCst);
        async { Ok::<_, Failure>(true) }
    });
    let worker = Running::start(worker, move |_: JobContext| {
        ran.fetch_add(1, SeqCst);
        async { Err::<(), _>("died after paying") }
    });
    worker.until(|summary| summary.done == 1).await;

    worker.stop().await;
    assert_eq!((runs.load(SeqCst), checks.load(SeqCst)), (1, 1));
    assert_eq!(fixture.stats().await.finished, 1);
}

/// A delivery that was given back is not counted, although its handler may have done the
/// work. So a check of every delivery is also called for the attempt with the number 1.
pub(crate) async fn done_work_is_found_at_an_attempt_with_the_number_1(
    fixture: Fixture,
) {
    fixture.push("paid").await;
    let paying = fixture.claim_one().await.unwrap();
    fixture.queue.give_back(&paying.receipt).await.unwrap();
    let runs = Arc::new(AtomicUsize::new(0));
    let ran = Arc::clone(&runs);

    let worker = fixture.worker().check_every_delivery();
    let worker = worker.already_done(async |_: JobContext| Ok::<_, Failure>(true));
    let worker = Running::start(worker, move |_: JobContext| {
        ran.fetch_add(1, SeqCst);
        async { Ok::<_, Failure>(()) }
    });
    worker.until(|summary| summary.done == 1).await;

    worker.stop().await;
    assert_eq!((runs.load(SeqCst), fixture.stats().await.finished), (0, 1));
}

/// If the already-done check fails, the job is neither run nor acknowledged.
pub(crate) async fn failed_check_runs_nothing_and_acks_nothing(fixture: Fixture) {
    fixture.push(job_of_attempts("paid", 2)).await;

    let worker = fixture
        .worker()
        .already_done(async |_: JobContext| Err::<bool, _>("the ledger is away"));
    let worker = Running::start(worker, async |_: JobContext| Err::<(), _>("once"));
    fixture.until(|stats| stats.dead == 1).await;

    assert_eq!(worker.stop().await.done, 0);
    let dead = fixture.dead().await;
    assert_eq!(dead[0].last_error.as_deref(), Some("the ledger is away"));
}
