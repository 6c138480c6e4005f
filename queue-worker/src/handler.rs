//! The trait for the application's code that a worker runs on each job.

use std::{future::Future, pin::Pin, sync::Arc, task::Context, time::Duration};

use crate::{Failure, JobContext, RetryPolicy};

/// The code that the worker runs on each job.
///
/// Every `async fn(JobContext) -> Result<(), E>`, and every closure like it, is a
/// handler when `E` converts into a [`Failure`], as all errors do.
/// [`json`](crate::json) makes a handler from a function that takes a type of the
/// application, and [`Router`](crate::Router) from a function for each kind of job.
///
/// Only `Ok` acknowledges the job. The worker drops the future on a time-out and at the
/// end of the grace time: the handler then ends at its current `await`.
///
/// A type implements the trait if it decides more for each job than a function can:
///
/// ```
/// use std::time::Duration;
/// use relq_worker::{Failure, Handler, JobContext};
///
/// /// Sends letters. A large one may take longer.
/// struct Sender {
///     from: String,
/// }
///
/// impl Handler for Sender {
///     async fn handle(&self, job: JobContext) -> Result<(), Failure> {
///         println!("from {} to {:?}", self.from, job.payload());
///         Ok(())
///     }
///
///     fn timeout(&self, job: &JobContext) -> Option<Duration> {
///         let is_large = job.payload().len() > 100_000;
///         Some(Duration::from_secs(if is_large { 300 } else { 30 }))
///     }
/// }
/// ```
pub trait Handler: Send + Sync + 'static {
    /// Runs one job.
    ///
    /// # Errors
    /// The failure says what becomes of the job: it is retried, buried, discarded or
    /// postponed.
    fn handle(
        &self,
        job: JobContext,
    ) -> impl Future<Output = Result<(), Failure>> + Send;

    /// Makes the handler ready for `jobs` jobs, and returns for how many of them it is
    /// ready. The worker calls this before each claim, and claims no more. `jobs` counts
    /// the jobs that the worker wants to claim, those that its pending claims may return,
    /// and those that it holds and has not passed to [`handle`](Self::handle) yet. Their
    /// number falls when a claim returns fewer jobs: the handler then stays ready.
    ///
    /// If the handler is ready for fewer, it wakes `context` when it may be ready for
    /// more. By default a handler is always ready.
    ///
    /// # Errors
    /// When the handler will never be ready again. The worker then stops hard, and ends
    /// with [`WorkerError::NotReady`](crate::WorkerError::NotReady). A panic counts as such
    /// an error.
    fn ready_for(
        &self,
        jobs: usize,
        _context: &mut Context<'_>,
    ) -> Result<usize, Failure> {
        Ok(jobs)
    }

    /// How long one attempt at `job` may take. The default is `None`, for the
    /// [time-out of the worker](crate::Worker::timeout). A time above
    /// [`MAX_DURATION`](relq_core::limits::MAX_DURATION) is reduced to it.
    fn timeout(&self, _job: &JobContext) -> Option<Duration> {
        None
    }

    /// How long `job` waits for its next attempt if this one fails. The default is
    /// `None`, for the [policy of the worker](crate::Worker::retry). That policy also
    /// counts if this call panics.
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

/// A handler of any type, so that the worker's code is compiled once, and not for the type of
/// each handler.
pub(crate) type AnyHandler = Arc<dyn DynHandler>;

/// A call of a handler, which returns the handler's result.
pub(crate) type Attempt<'a> =
    Pin<Box<dyn Future<Output = Result<(), Failure>> + Send + 'a>>;

/// A [`Handler`] that can be a trait object: its future is boxed.
pub(crate) trait DynHandler: Send + Sync {
    fn handle_boxed(&self, job: JobContext) -> Attempt<'_>;

    fn ready_for(
        &self,
        jobs: usize,
        context: &mut Context<'_>,
    ) -> Result<usize, Failure>;

    fn timeout(&self, job: &JobContext) -> Option<Duration>;

    fn retry_policy(&self, job: &JobContext) -> Option<RetryPolicy>;
}

impl<H: Handler> DynHandler for H {
    fn handle_boxed(&self, job: JobContext) -> Attempt<'_> {
        Box::pin(self.handle(job))
    }

    fn ready_for(
        &self,
        jobs: usize,
        context: &mut Context<'_>,
    ) -> Result<usize, Failure> {
        Handler::ready_for(self, jobs, context)
    }

    fn timeout(&self, job: &JobContext) -> Option<Duration> {
        Handler::timeout(self, job)
    }

    fn retry_policy(&self, job: &JobContext) -> Option<RetryPolicy> {
        Handler::retry_policy(self, job)
    }
}
