//! Tests of `run_until_empty`, which ends the worker when no work is left.

use std::time::Duration;

use relq::{
    NewJob,
    worker::{Failure, JobContext, WorkerError},
};

use crate::fixture::Fixture;

/// A duration that is longer than any test takes.
const LONG: Duration = Duration::from_secs(3600);

/// Every job is run, and a failed one is retried before the worker ends.
pub(crate) async fn it_ends_when_all_jobs_are_done(fixture: Fixture) {
    fixture.push_many(20).await;
    let handler = async |job: JobContext| match job.attempt() {
        1 => Err(Failure::from("the first attempt fails")),
        _ => Ok(()),
    };
    let queue = fixture.queue.clone();
    let ended = fixture.worker().run_until_empty(queue, Duration::MAX, handler).await;

    assert_eq!(ended.unwrap().done, 20);
    assert_eq!(fixture.stats().await.unfinished(), 0);
}

/// The worker does not wait for a job that is due later than `max_wait`. It ends and
/// leaves that job in the queue.
pub(crate) async fn it_leaves_what_falls_due_later(fixture: Fixture) {
    fixture.push("now").await;
    fixture.push(NewJob::new("later").delay(LONG)).await;
    let handler = async |_: JobContext| Ok::<_, Failure>(());
    let queue = fixture.queue.clone();
    let ended = fixture.worker().run_until_empty(queue, LONG / 2, handler).await;

    assert_eq!(ended.unwrap().done, 1);
    assert_eq!(fixture.stats().await.scheduled, 1);
}

/// The worker ends with an error when the queue is paused.
pub(crate) async fn it_ends_when_the_queue_is_paused(fixture: Fixture) {
    fixture.push("job").await;
    fixture.queue.pause().await.unwrap();
    let handler = async |_: JobContext| Ok::<_, Failure>(());
    let worker = fixture.worker();
    let progress = worker.progress();
    let ended = worker.run_until_empty(fixture.queue.clone(), LONG, handler).await;

    assert!(matches!(ended, Err(WorkerError::Paused)), "{ended:?}");
    assert_eq!((progress.summary().done, fixture.stats().await.ready), (0, 1));
}

/// A request to stop ends a worker that waits for a scheduled job.
pub(crate) async fn it_stops_when_asked(fixture: Fixture) {
    fixture.push(NewJob::new("later").delay(LONG)).await;
    let handler = async |_: JobContext| Ok::<_, Failure>(());
    let worker = fixture.worker().stop_on(async {});
    let ended = worker.run_until_empty(fixture.queue.clone(), LONG * 2, handler).await;

    assert_eq!(ended.unwrap().done, 0);
    assert_eq!(fixture.stats().await.scheduled, 1);
}
