//! A check by the application whether an earlier attempt has already done a job's work.

use std::{future::Future, pin::Pin, sync::Arc};

use crate::{Failure, JobContext};

/// A check for a job that may have run before: whether an earlier attempt did the work,
/// although the job was not acknowledged.
///
/// Every `async fn(JobContext) -> Result<bool, E>` is such a check.
pub trait AlreadyDone: Send + Sync + 'static {
    /// Returns whether the work of `job` was done. An error is a failed attempt.
    fn is_done(
        &self,
        job: JobContext,
    ) -> impl Future<Output = Result<bool, Failure>> + Send;
}

impl<F, Fut, E> AlreadyDone for F
where
    F: Fn(JobContext) -> Fut + Send + Sync + 'static,
    Fut: Future<Output = Result<bool, E>> + Send,
    E: Into<Failure>,
{
    async fn is_done(&self, job: JobContext) -> Result<bool, Failure> {
        self(job).await.map_err(Into::into)
    }
}

type Answer = Pin<Box<dyn Future<Output = Result<bool, Failure>> + Send>>;

/// A check whose type is erased, so that the worker has no type parameter for it.
#[derive(Clone)]
pub(crate) struct Check(Arc<dyn Fn(JobContext) -> Answer + Send + Sync>);

impl Check {
    pub(crate) fn new(check: impl AlreadyDone) -> Self {
        let check = Arc::new(check);
        Self(Arc::new(move |job| {
            let check = Arc::clone(&check);
            Box::pin(async move { check.is_done(job).await })
        }))
    }

    pub(crate) async fn is_done(&self, job: JobContext) -> Result<bool, Failure> {
        (self.0)(job).await
    }
}
