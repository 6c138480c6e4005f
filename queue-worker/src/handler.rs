//! What an application gives a worker to run.

use std::future::Future;

use crate::{Failure, JobContext};

/// What is run on each job.
///
/// Every `async fn(JobContext) -> Result<(), E>`, and every closure like it, is a
/// handler when `E` turns into a [`Failure`], as all errors do. [`json`](crate::json)
/// makes one of a function that takes a type of its own.
///
/// `Ok` acknowledges the job; nothing else does. When the future is dropped (on a
/// time-out, at the end of the grace time) it ends at its current `await`.
pub trait Handler: Send + Sync + 'static {
    /// Works on one job.
    fn handle(
        &self,
        job: JobContext,
    ) -> impl Future<Output = Result<(), Failure>> + Send;
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
