//! The trait for the application's code that a worker runs on each job.

use std::{future::Future, time::Duration};

use crate::{Failure, JobContext, RetryPolicy};

/// The code that the worker runs on each job.
///
/// Every `async fn(JobContext) -> Result<(), E>`, and every closure like it, is a
/// handler when `E` converts into a [`Failure`], as all errors do.
/// [`json`](crate::json) makes a handler from a function that takes a type of the
/// application, and [`Router`](crate::Router) from a function for each kind of job.
///
/// `Ok` acknowledges the job; nothing else does. When the future is dropped (on a
/// time-out, at the end of the grace time) it ends at its current `await`.
pub trait Handler: Send + Sync + 'static {
    /// Runs one job.
    fn handle(
        &self,
        job: JobContext,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// How long one attempt at `job` may take. The default is `None`, for the
    /// [time-out of the worker](crate::Worker::timeout). A longer time than
    /// [`MAX_DURATION`](relq_core::limits::MAX_DURATION) counts as that.
    fn timeout(&self, _job: &JobContext) -> Option<Duration> {
        None
    }

    /// How long `job` waits for its next attempt if this one fails. The default is
    /// `None`, for the [policy of the worker](crate::Worker::retry).
    fn retry_policy(&self, _job: &JobContext) -> Option<RetryPolicy> {
        None
    }
}

impl<F, Fut, E> Handler for F
where
    F: Fn(JobContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<(), E>> + Send,
    E: Into<Failure>,
{
    async fn handle(&self, job: JobContext) -> Result<(), Failure> {
        self(job).await.map_err(Into::into)
    }
}
