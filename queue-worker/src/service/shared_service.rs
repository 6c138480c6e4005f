//! A service that many clones share.

use std::{
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, ready},
};

use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio_util::sync::PollSemaphore;
use tower_service::Service;

/// Makes any service [`Clone`], for example one with tower's layer `rate_limit`.
///
/// The clones share one service, and one of them at a time is ready. So a worker claims
/// one job at a time; any number of jobs runs at once. tower's `Buffer` does not help:
/// it is ready before the service behind it, so a worker would claim jobs that must wait.
///
/// ```
/// use std::time::Duration;
/// use relq_worker::{Failure, Handler, JobContext, SharedService, layered};
/// use tower::ServiceBuilder;
///
/// async fn send(job: JobContext) -> Result<(), Failure> {
///     Ok(())
/// }
///
/// /// Call this on a tokio runtime, because the rate limit makes a timer.
/// fn limited() -> impl Handler {
///     layered(send, |service| {
///         ServiceBuilder::new()
///             .layer_fn(SharedService::new)
///             .rate_limit(100, Duration::from_secs(60))
///             .service(service)
///     })
/// }
/// ```
#[derive(Debug)]
pub struct SharedService<S> {
    service: Arc<Mutex<S>>,
    turns: PollSemaphore,
    /// The right to be ready, from `poll_ready` until `call`.
    turn: Option<OwnedSemaphorePermit>,
}

impl<S> SharedService<S> {
    /// Shares `service` between the clones of the returned value.
    pub fn new(service: S) -> Self {
        let turns = PollSemaphore::new(Arc::new(Semaphore::new(1)));
        Self { service: Arc::new(Mutex::new(service)), turns, turn: None }
    }
}

impl<S: Service<Request>, Request> Service<Request> for SharedService<S> {
    type Response = S::Response;
    type Error = S::Error;
    type Future = S::Future;

    fn poll_ready(&mut self, context: &mut Context<'_>) -> Poll<Result<(), S::Error>> {
        if self.turn.is_none() {
            self.turn = ready!(self.turns.poll_acquire(context));
        }
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        service.poll_ready(context)
    }

    /// # Panics
    /// When the service is not ready, which is an error of the program.
    fn call(&mut self, request: Request) -> S::Future {
        let _turn = self.turn.take().expect("a service is called when it is ready");
        let mut service = self.service.lock().unwrap_or_else(PoisonError::into_inner);
        service.call(request)
    }
}

impl<S> Clone for SharedService<S> {
    fn clone(&self) -> Self {
        let (service, turns) = (Arc::clone(&self.service), self.turns.clone());
        Self { service, turns, turn: None }
    }
}
