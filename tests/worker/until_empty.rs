//! A worker that ends when there is no work left.

use std::time::Duration;

use relq::{
    NewJob,
    worker::{Failure, JobContext, WorkerError},
};

use crate::fixture::Fixture;

/// Longer than any test takes.
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

/// A job that becomes due later is left for a later worker.
pub(crate) async fn it_leaves_what_falls_due_later(fixture: Fixture) {
    fixture.push("now").await;
    fixture.push(NewJob::new("later").delay(LONG)).await;
    let handler = async |_: JobContext| Ok::<_, Failure>(());
    let queue = fixture.queue.clone();
    let ended = fixture.worker().run_until_empty(queue, LONG / 2, handler).await;

    assert_eq!(ended.unwrap().done, 1);
    assert_eq!(fixture.stats().await.scheduled, 1);
}

/// A paused queue does not become empty.
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

/// A request to stop ends the worker as usual.
pub(crate) async fn it_stops_when_asked(fixture: Fixture) {
    fixture.push(NewJob::new("later").delay(LONG)).await;
    let handler = async |_: JobContext| Ok::<_, Failure>(());
    let worker = fixture.worker().stop_on(async {});
    let ended = worker.run_until_empty(fixture.queue.clone(), LONG * 2, handler).await;

    assert_eq!(ended.unwrap().done, 0);
    assert_eq!(fixture.stats().await.scheduled, 1);
}
