//! A handler as a service.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
};

use relq_core::error::BoxError;
use tower_service::Service;

use crate::{Handler, JobContext};

/// A [`Handler`] as a service of tower, which layers can wrap. Clones are cheap and share
/// the handler.
///
/// Its errors are [`Failure`](crate::Failure)s as
/// [errors](crate::Failure::into_error), because most layers need an error. They convert
/// back into the same failures, so a handler behind layers can still bury or postpone a
/// job.
///
/// The service is always ready, and it knows no time-out and no retry policy of its
/// handler: [`layered`](crate::layered) keeps those.
pub struct HandlerService<H>(pub(super) Arc<H>);

impl<H: Handler> HandlerService<H> {
    /// The service that runs `handler`.
    pub fn new(handler: H) -> Self {
        Self(Arc::new(handler))
    }
}

impl<H: Handler> Service<JobContext> for HandlerService<H> {
    type Response = ();
    type Error = BoxError;
    type Future = Pin<Box<dyn Future<Output = Result<(), BoxError>> + Send>>;

    fn poll_ready(&mut self, _context: &mut Context<'_>) -> Poll<Result<(), BoxError>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, job: JobContext) -> Self::Future {
        let handler = Arc::clone(&self.0);
        Box::pin(async move {
            handler.handle(job).await.map_err(crate::Failure::into_error)
        })
    }
}

impl<H> Clone for HandlerService<H> {
    fn clone(&self) -> Self {
        Self(Arc::clone(&self.0))
    }
}

impl<H> fmt::Debug for HandlerService<H> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandlerService").finish_non_exhaustive()
    }
}
