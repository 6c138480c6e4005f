//! The trait for the application's code that a worker runs on each job.

use std::future::Future;

use crate::{Failure, JobContext};

/// The code that the worker runs on each job.
///
/// Every `async fn(JobContext) -> Result<(), E>`, and every closure like it, is a
/// handler when `E` converts into a [`Failure`], as all errors do.
/// [`json`](crate::json) makes a handler from a function that takes a type of the
/// application.
///
/// `Ok` acknowledges the job; nothing else does. When the future is dropped (on a
/// time-out, at the end of the grace time) it ends at its current `await`.
pub trait Handler: Send + Sync + 'static {
    /// Runs one job.
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
