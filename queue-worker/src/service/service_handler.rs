//! A service as a handler.

use std::{
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll},
    time::Duration,
};

use tower_service::Service;

use crate::{Failure, Handler, HandlerService, JobContext, RetryPolicy};

/// Makes a [`Handler`] of a service of tower.
///
/// Before a claim, the worker makes a clone of the service ready for each job, by
/// `poll_ready`, and it claims no more jobs than it has ready clones. So a service that is
/// not ready, for example because a limit is reached, leaves the jobs to other workers.
/// Wrap a service that is not `Clone` in a [`SharedService`](crate::SharedService).
///
/// * A worker keeps its ready clones even while the queue is empty. If two workers share
///   one limit, such as tower's `GlobalConcurrencyLimit`, an idle worker can use it up
///   and so stop the other: give each worker a limit of its own.
/// * An error of the service is a failed attempt, like an error of a handler. tower's
///   `map_err` can turn it into another [`Failure`]: an error that means that the job was
///   not run, such as tower's `Overloaded`, should [postpone](Failure::postpone) the job.
/// * An error of `poll_ready` ends the worker with
///   [`WorkerError::NotReady`](crate::WorkerError::NotReady): by the rules of tower, such
///   a service is never ready again. Jobs that it has not run wait for another worker, and
///   no attempt is counted.
/// * The time-out and the retry policy are those of the worker.
///
/// ```
/// use std::time::Duration;
/// use relq_worker::{Failure, JobContext, service};
/// use tower::{BoxError, ServiceBuilder, load_shed::error::Overloaded, service_fn};
///
/// async fn send(job: JobContext) -> Result<(), BoxError> {
///     Ok(())
/// }
///
/// let handler = service(
///     ServiceBuilder::new()
///         .map_err(|error: BoxError| match error.is::<Overloaded>() {
///             true => Failure::postpone(Duration::from_secs(5), "overloaded"),
///             false => error.into(),
///         })
///         .load_shed()
///         .concurrency_limit(4)
///         .service(service_fn(send)),
/// );
/// ```
pub fn service<S>(service: S) -> ServiceHandler<S>
where
    S: Service<JobContext, Response = ()> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Failure>,
{
    ServiceHandler { clones: Mutex::new(Clones::of(service)), options: None }
}

/// Puts layers of tower around `handler`, for example a [`Router`](crate::Router).
///
/// `layers` receives the handler as a service and returns the service that the worker
/// calls, for which all of [`service`] holds. The time-outs and the retry policies of
/// `handler` still hold; a time-out includes the time in the layers. The worker asks only the
/// layers whether they are ready: a limit of a service inside `handler` makes jobs wait that
/// are leased already.
///
/// ```
/// use std::time::Duration;
/// use relq_worker::{Failure, JobContext, layered};
/// use tower::ServiceBuilder;
///
/// async fn send(job: JobContext) -> Result<(), Failure> {
///     Ok(())
/// }
///
/// let handler = layered(send, |service| {
///     ServiceBuilder::new()
///         .concurrency_limit(4)
///         .timeout(Duration::from_secs(30))
///         .service(service)
/// });
/// ```
pub fn layered<H, S>(
    handler: H,
    layers: impl FnOnce(HandlerService<H>) -> S,
) -> ServiceHandler<S>
where
    H: Handler,
    S: Service<JobContext, Response = ()> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Failure>,
{
    let inner = HandlerService::new(handler);
    let options: Arc<dyn JobOptions> = Arc::clone(&inner.0) as _;
    ServiceHandler { options: Some(options), ..service(layers(inner)) }
}

/// A [`Handler`] that calls a service of tower. [`service`] and [`layered`] make it.
pub struct ServiceHandler<S> {
    clones: Mutex<Clones<S>>,
    /// The handler behind the layers, which has the options of each job.
    options: Option<Arc<dyn JobOptions>>,
}

/// The clones of a service that are not called yet.
struct Clones<S> {
    original: S,
    /// The oldest is called first. A clone of `LoadShed` may wait for a limit here, and the
    /// oldest is the first to get it.
    ready: VecDeque<S>,
    /// The clone that becomes ready next. One clone waits at a time, so that a worker with
    /// many slots does not poll a clone for each again and again.
    waiting: Option<S>,
    /// Why a clone that was ready is not ready any more.
    failure: Option<Failure>,
}

/// The options of a handler for a job, which it returns without running the job.
trait JobOptions: Send + Sync {
    fn timeout(&self, job: &JobContext) -> Option<Duration>;

    fn retry_policy(&self, job: &JobContext) -> Option<RetryPolicy>;
}

impl<S> Handler for ServiceHandler<S>
where
    S: Service<JobContext, Response = ()> + Clone + Send + 'static,
    S::Future: Send,
    S::Error: Into<Failure>,
{
    fn handle(
        &self,
        job: JobContext,
    ) -> impl Future<Output = Result<(), Failure>> + Send {
        let mut service = self.lock(Clones::take);
        async move {
            // The clone is ready, unless the caller is not a worker. It is polled again,
            // because time has passed: tower's `LoadShed` decides here whether it sheds.
            let ready = poll_fn(|context| service.poll_ready(context)).await;
            ready.map_err(|error| self.not_run(error.into()))?;
            let response = service.call(job);
            drop(service);
            response.await.map_err(Into::into)
        }
    }

    fn ready_for(
        &self,
        jobs: usize,
        context: &mut Context<'_>,
    ) -> Result<usize, Failure> {
        self.lock(|clones| match clones.failure.clone() {
            Some(failure) => Err(failure),
            None => clones.ready_for(jobs, context).map_err(Into::into),
        })
    }

    fn timeout(&self, job: &JobContext) -> Option<Duration> {
        self.options.as_ref()?.timeout(job)
    }

    fn retry_policy(&self, job: &JobContext) -> Option<RetryPolicy> {
        self.options.as_ref()?.retry_policy(job)
    }
}

impl<S> ServiceHandler<S> {
    fn lock<T>(&self, action: impl FnOnce(&mut Clones<S>) -> T) -> T {
        action(&mut self.clones.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// Ends the worker at its next claim, because the service will not be ready again.
    /// Returns the failure of a job that was not run, so that its attempt does not count.
    fn not_run(&self, failure: Failure) -> Failure {
        let words = format!("not run: {}", failure.message());
        self.lock(|clones| clones.failure = Some(failure));
        Failure::postpone(Duration::ZERO, words)
    }
}

impl<S: Service<JobContext> + Clone> Clones<S> {
    fn of(original: S) -> Self {
        Self { original, ready: VecDeque::new(), waiting: None, failure: None }
    }

    fn take(&mut self) -> S {
        self.ready.pop_front().unwrap_or_else(|| self.original.clone())
    }

    fn ready_for(
        &mut self,
        jobs: usize,
        context: &mut Context<'_>,
    ) -> Result<usize, S::Error> {
        while self.ready.len() < jobs {
            let next = self.waiting.take();
            let mut next = next.unwrap_or_else(|| self.original.clone());
            match next.poll_ready(context)? {
                Poll::Ready(()) => self.ready.push_back(next),
                Poll::Pending => {
                    self.waiting = Some(next);
                    break;
                }
            }
        }
        Ok(self.ready.len())
    }
}

impl<H: Handler> JobOptions for H {
    fn timeout(&self, job: &JobContext) -> Option<Duration> {
        Handler::timeout(self, job)
    }

    fn retry_policy(&self, job: &JobContext) -> Option<RetryPolicy> {
        Handler::retry_policy(self, job)
    }
}

impl<S> fmt::Debug for ServiceHandler<S> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ServiceHandler").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{
        convert::Infallible,
        sync::atomic::{AtomicUsize, Ordering::SeqCst},
        task::{Wake, Waker},
    };

    use relq_core::{Delivery, JobId, Receipt};
    use tower::{ServiceBuilder, service_fn};

    use super::*;

    fn job() -> JobContext {
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        JobContext::new(Delivery::new(receipt, "", Duration::from_secs(30)))
    }

    async fn succeed(_: JobContext) -> Result<(), Infallible> {
        Ok(())
    }

    /// A waker that counts how often it is woken.
    #[derive(Default)]
    struct Woken(AtomicUsize);

    impl Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.fetch_add(1, SeqCst);
        }
    }

    /// A clone that is ready has taken its place from a limit. So there is one for each job,
    /// and no more.
    #[test]
    fn a_clone_is_made_ready_for_each_job() {
        let handler = service(service_fn(succeed));

        let ready = handler.ready_for(2, &mut Context::from_waker(Waker::noop()));

        assert_eq!(ready.unwrap(), 2, "the ready clones");
    }

    /// The clone that waits for a limit wakes the worker when it has a place. Without it, the
    /// worker would sleep although the limit has one.
    #[tokio::test]
    async fn the_end_of_a_job_wakes_a_worker_that_waits_for_a_limit() {
        let limited = ServiceBuilder::new().concurrency_limit(1);
        let handler = service(limited.service(service_fn(succeed)));
        let woken = Arc::new(Woken::default());
        let waker = Waker::from(Arc::clone(&woken));
        let ready = handler.ready_for(2, &mut Context::from_waker(&waker));
        assert_eq!(ready.unwrap(), 1, "a job at a time");

        handler.handle(job()).await.unwrap();

        assert!(woken.0.load(SeqCst) > 0, "the worker sleeps");
    }

    /// A service that is ready for the first time only.
    #[derive(Clone, Default)]
    struct ReadyOnce(bool);

    impl Service<JobContext> for ReadyOnce {
        type Response = ();
        type Error = Failure;
        type Future = std::future::Ready<Result<(), Failure>>;

        fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<Result<(), Failure>> {
            if std::mem::replace(&mut self.0, true) {
                return Poll::Ready(Err(Failure::retry("closed")));
            }
            Poll::Ready(Ok(()))
        }

        fn call(&mut self, _: JobContext) -> Self::Future {
            std::future::ready(Ok(()))
        }
    }

    /// A service that has failed is never ready again. The worker ends, and does not claim
    /// jobs that no service can run.
    #[tokio::test]
    async fn a_service_that_fails_before_a_job_is_never_ready_again() {
        let handler = service(ReadyOnce::default());
        let mut context = Context::from_waker(Waker::noop());
        assert_eq!(handler.ready_for(1, &mut context).unwrap(), 1);

        let not_run = handler.handle(job()).await.unwrap_err();

        assert_eq!(not_run.message(), "not run: closed");
        let failure = handler.ready_for(1, &mut context).unwrap_err();
        assert_eq!(failure.message(), "closed");
    }

    /// A handler with a policy of its own.
    struct WithPolicy(RetryPolicy);

    impl Handler for WithPolicy {
        async fn handle(&self, _: JobContext) -> Result<(), Failure> {
            Ok(())
        }

        fn retry_policy(&self, _: &JobContext) -> Option<RetryPolicy> {
            Some(self.0)
        }
    }

    #[test]
    fn the_retry_policy_of_a_handler_holds_behind_its_layers() {
        let second = Duration::from_secs(1);
        let policy = RetryPolicy::exponential(second, second).unwrap();
        let handler = layered(WithPolicy(policy), |service| service);

        assert_eq!(Handler::retry_policy(&handler, &job()), Some(policy));
    }
}
