//! Tests that a producer hears what becomes of a job that keeps its result (R29).

use std::{
    num::NonZeroU16,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering},
    },
    time::Duration,
};

use relq::{
    Bytes, Error, JobId, NewJob, ReliableQueueExt,
    environment::Environment,
    operator::Selection,
    results::{JobResult, NoResult},
    worker::{
        EnqueueError, Failure, Job, JobContext, Producer, ProgressError, Router,
        SetResultError,
    },
};
use relq_conformance::{
    async_trait,
    overrides::{OverriddenQueue, Override, Right},
};
use serde::{Deserialize, Serialize};
use tokio::sync::Notify;

use crate::fixture::{Fixture, LIMIT};

const HOUR: Duration = Duration::from_secs(3600);

fn kept(payload: &'static str) -> NewJob {
    NewJob::new(payload).keep_result(HOUR)
}

async fn push(fixture: &Fixture, job: NewJob) -> JobId {
    fixture.queue.push_one(job).await.unwrap().job().clone()
}

/// Waits for the end of a job. Fails the test if that takes too long.
async fn ended(fixture: &Fixture, id: &JobId) -> Option<JobResult> {
    let handle = fixture.queue.job_handle(id).unwrap();
    tokio::time::timeout(LIMIT, handle.result()).await.expect("it ends").unwrap()
}

fn done(result: &'static str) -> Option<JobResult> {
    Some(JobResult::Done { result: result.into() })
}

/// R29: the last result that the handler sets is that of the job, and a handler that sets
/// none leaves an empty one.
pub(crate) async fn result_of_the_handler_reaches_the_producer(fixture: Fixture) {
    let [counted, silent] = [kept("four"), kept("")];
    let (counted, silent) =
        (push(&fixture, counted).await, push(&fixture, silent).await);

    let worker = fixture.start(async |job: JobContext| {
        if !job.payload().is_empty() {
            job.set_result("counting")?;
            job.set_result(job.payload().len().to_string())?;
        }
        Ok::<_, SetResultError>(())
    });

    assert_eq!(ended(&fixture, &counted).await, done("4"));
    assert_eq!(ended(&fixture, &silent).await, done(""));
    worker.stop().await;
}

/// R29: an attempt that fails leaves no result, and the next one begins without it.
pub(crate) async fn result_of_a_failed_attempt_is_dropped(fixture: Fixture) {
    let twice = kept("twice");
    let once = kept("once").max_attempts(NonZeroU16::MIN);
    let (twice, once) = (push(&fixture, twice).await, push(&fixture, once).await);

    let worker = fixture.start(async |job: JobContext| {
        if job.attempt() == 1 {
            job.set_result("half")?;
            return Err(Failure::retry("broken"));
        }
        Ok(())
    });

    assert_eq!(ended(&fixture, &twice).await, done(""));
    let dead = ended(&fixture, &once).await;
    let is_told =
        matches!(&dead, Some(JobResult::Dead { error }) if error.contains("broken"));
    assert!(is_told, "{dead:?}");
    worker.stop().await;
    fixture.queue.purge_dead(&Selection::All).await.unwrap();
    assert_eq!(ended(&fixture, &once).await, Some(JobResult::Purged));
}

/// R29: a job that keeps no result drops what its handler gives it, and its worker makes no
/// call for it.
pub(crate) async fn job_that_keeps_no_result_has_none(fixture: Fixture) {
    let id = push(&fixture, "plain".into()).await;

    let worker = fixture.start(async |job: JobContext| {
        assert!(!job.keeps_result());
        job.set_result("nobody reads it")?;
        job.report_progress("half").await?;
        Ok::<_, Failure>(())
    });
    worker.until(|summary| summary.done == 1).await;
    worker.stop().await;

    assert_eq!(ended(&fixture, &id).await, None);
}

/// R29: the progress that a handler reports is shown while it runs.
pub(crate) async fn progress_is_shown_until_the_end(fixture: Fixture) {
    let id = push(&fixture, kept("long")).await;
    let (reported, seen) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (report, see) = (Arc::clone(&reported), Arc::clone(&seen));

    let worker = fixture.start(move |job: JobContext| {
        let (report, see) = (Arc::clone(&report), Arc::clone(&see));
        async move {
            job.report_progress("a half").await?;
            job.report_json_progress(&[2, 3]).await?;
            report.notify_one();
            see.notified().await;
            Ok::<_, Failure>(())
        }
    });
    tokio::time::timeout(LIMIT, reported.notified()).await.expect("it reports");
    let handle = fixture.queue.job_handle(&id).unwrap();
    let shown = handle.look().await.unwrap();
    let waited = handle.wait_result(Duration::from_millis(1)).await.unwrap();
    seen.notify_one();

    let progress = Some(Bytes::from("[2,3]"));
    assert_eq!(shown, Some(JobResult::Unfinished { progress }));
    assert_eq!(waited, shown, "a wait that is over tells the progress too");
    assert_eq!(ended(&fixture, &id).await, done(""));
    worker.stop().await;
}

/// R7: an attempt that has lost its lease is told so when it reports progress, and its
/// result is dropped. The progress that was refused does not count as reported. The producer
/// hears that the job was cancelled.
pub(crate) async fn progress_without_a_lease_is_refused(fixture: Fixture) {
    let id = push(&fixture, kept("unwanted")).await;
    let refused = Arc::new(Mutex::new(None));
    let seen = Arc::clone(&refused);
    let operator = fixture.queue.clone();

    let worker = fixture.start(move |job: JobContext| {
        let (seen, operator) = (Arc::clone(&seen), operator.clone());
        async move {
            operator.cancel(job.id()).await?;
            let reported = job.report_progress("half").await;
            *seen.lock().unwrap() = Some((reported, job.reported_progress()));
            job.set_result("too late")?;
            Ok::<_, Failure>(())
        }
    });

    assert_eq!(ended(&fixture, &id).await, Some(JobResult::Cancelled { leader: None }));
    worker.until(|it| it.cancelled + it.lost == 1).await;
    assert_eq!(worker.stop().await.done, 0);
    let refused = refused.lock().unwrap().take();
    let (reported, remembered) = refused.expect("the handler has run");
    assert!(matches!(reported, Err(ProgressError::LeaseLost)), "{reported:?}");
    assert_eq!(remembered, None, "R7: a progress that the store refused");
}

#[derive(Serialize, Deserialize)]
struct Resize {
    width: u32,
}

impl Job for Resize {
    const KIND: &'static str = "resize";

    fn options(&self, job: NewJob) -> NewJob {
        job.keep_result(HOUR).max_attempts(NonZeroU16::MIN)
    }
}

/// R29: a kind keeps its results, and handlers and producers use types of the application.
pub(crate) async fn result_of_a_kind_is_a_value(fixture: Fixture) {
    let producer = Producer::new(fixture.queue.clone());
    let result = async |width| {
        let pushed = producer.enqueue(&Resize { width }).await.unwrap();
        let handle = producer.job_handle::<Resize>(pushed.job()).unwrap();
        let result = handle.json_result::<(u32, u32)>();
        tokio::time::timeout(LIMIT, result).await.expect("it ends")
    };

    let router = Router::new().job(async |resize: Resize, job: JobContext| {
        if resize.width == 0 {
            return Err(Failure::dead("nothing to resize"));
        }
        Ok(job.set_json_result(&(resize.width, resize.width / 2))?)
    });
    let worker = fixture.start(router.with_state(()));

    assert_eq!(result(8).await.unwrap(), (8, 4));
    let pushed = producer.enqueue(&Resize { width: 6 }).await.unwrap();
    let handle = producer.job_handle::<Resize>(pushed.job()).unwrap();
    let text = handle.json_result::<String>().await;
    assert!(matches!(text, Err(NoResult::Decode(_))), "not a text: {text:?}");
    let never = JobId::new("never").unwrap();
    let handle = producer.job_handle::<Resize>(&never).unwrap();
    let unknown = handle.json_result::<String>().await;
    assert!(matches!(unknown, Err(NoResult::Unknown)), "no such job: {unknown:?}");
    let refused = result(0).await;
    let is_told =
        matches!(&refused, Err(NoResult::Dead { error }) if error.contains("nothing"));
    assert!(is_told, "{refused:?}");
    worker.stop().await;
}

/// A backend without results refuses a job that keeps one, and has no handle on jobs.
pub(crate) async fn backend_without_results_refuses_them(fixture: Fixture) {
    let pushed = fixture.queue.push_one(kept("job")).await;
    assert!(matches!(pushed, Err(Error::Unsupported { .. })), "{pushed:?}");
    let id = push(&fixture, "job".into()).await;
    let handle = fixture.queue.job_handle(&id).map(drop);
    assert!(matches!(handle, Err(Error::Unsupported { .. })), "{handle:?}");
    let handle =
        Producer::new(fixture.queue.clone()).job_handle::<Resize>(&id).map(drop);
    assert!(matches!(handle, Err(EnqueueError::Results(_))), "{handle:?}");
}

/// Answers the first waits as a store does whose longest wait is over.
#[derive(Default)]
struct Impatient(AtomicUsize);

#[async_trait]
impl Override for Impatient {
    async fn wait_result(
        &self,
        right: &Right,
        job: &JobId,
        timeout: Duration,
    ) -> Result<Option<JobResult>, Error> {
        if self.0.fetch_add(1, Ordering::Relaxed) < 2 {
            return Ok(Some(JobResult::Unfinished { progress: None }));
        }
        right.results().wait_result(job, timeout).await
    }
}

/// A wait for a result has no end but that of the job, however long that takes.
#[tokio::test]
async fn wait_goes_on_until_the_job_has_ended() {
    let fixture = Fixture::sqlite().await;
    let right =
        Right { queue: fixture.queue.clone(), environment: Environment::default() };
    let queue = OverriddenQueue::new(right, Arc::new(Impatient::default()));
    let id = push(&fixture, kept("job")).await;
    let worker = fixture.start(async |_: JobContext| Ok::<_, Failure>(()));

    let handle = queue.job_handle(&id).unwrap();
    let result = tokio::time::timeout(LIMIT, handle.result()).await.expect("it ends");

    assert_eq!(result.unwrap(), done(""));
    worker.stop().await;
}
