//! Tests of a service of tower that fails instead of becoming ready: it ends the worker.

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    task::{Context, Poll},
};

use relq::worker::{JobContext, WorkerError, service};
use tower::{BoxError, Service};

use crate::{
    clocks::PartingClock,
    fixture::{Fixture, Running, eventually},
};

/// A service that is ready for a number of jobs, and then fails.
#[derive(Clone)]
struct Failing(Arc<AtomicUsize>);

impl Service<JobContext> for Failing {
    type Response = ();
    type Error = BoxError;
    type Future = std::future::Ready<Result<(), BoxError>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        match self.0.load(SeqCst) {
            0 => Poll::Ready(Err("the pool is closed".into())),
            _ => Poll::Ready(Ok(())),
        }
    }

    fn call(&mut self, _: JobContext) -> Self::Future {
        self.0.fetch_sub(1, SeqCst);
        std::future::ready(Ok(()))
    }
}

/// Runs a worker whose service fails after one job, and returns the message of its error.
async fn end_of_a_failing_service(fixture: &Fixture, slots: u32) -> String {
    let left = Arc::new(AtomicUsize::new(1));
    let worker = fixture
        .worker()
        .concurrency(slots.try_into().unwrap())
        .environment(PartingClock::stopped().environment());
    let worker = Running::start(worker, service(Failing(Arc::clone(&left))));
    fixture.push("job").await;
    eventually(|| left.load(SeqCst) == 0).await;
    fixture.push_many(3).await;
    match worker.end().await {
        Err(WorkerError::NotReady(failure)) => failure.message().to_owned(),
        ended => panic!("{ended:?}"),
    }
}

/// Asserts that one job is done, and that the others wait for their first attempt.
async fn assert_three_wait(fixture: &Fixture) {
    let stats = fixture.stats().await;
    assert_eq!((stats.finished, stats.ready, stats.leased), (1, 3, 0));
    while let Some(job) = fixture.claim_one().await {
        assert_eq!(job.attempt(), 1);
    }
}

/// A service that cannot become ready ends the worker, and the jobs stay in the queue.
pub(crate) async fn service_that_fails_ends_the_worker(fixture: Fixture) {
    let error = end_of_a_failing_service(&fixture, 1).await;

    assert_eq!(error, "the pool is closed");
    assert_three_wait(&fixture).await;
}

/// A service may fail after it was ready. Its jobs are not run, and no attempt counts.
pub(crate) async fn service_that_fails_after_the_claim_counts_no_attempt(
    fixture: Fixture,
) {
    let error = end_of_a_failing_service(&fixture, 16).await;

    assert_eq!(error, "the pool is closed");
    assert_three_wait(&fixture).await;
}
