//! The handlers of a router, with their types erased.

use std::{marker::PhantomData, sync::Arc, task::Context, time::Duration};

use crate::{
    Failure, Handler, Job, JobContext, JobHandler, RetryPolicy, handler::Attempt,
};

/// The payload of a job does not fit the type of its kind. The text says why.
pub(super) struct Undecodable(pub(super) String);

/// One handler of a router. The router calls it with the job and with the state `S` of the
/// application.
pub(super) trait Route<S>: Send + Sync {
    /// Decodes the payload, and returns the call of the handler.
    fn handle<'a>(
        &'a self,
        job: JobContext,
        state: &'a S,
    ) -> Result<Attempt<'a>, Undecodable>;

    fn ready_for(
        &self,
        jobs: usize,
        context: &mut Context<'_>,
    ) -> Result<usize, Failure>;

    fn timeout(&self, job: &JobContext) -> Option<Duration>;

    fn retry_policy(&self, job: &JobContext) -> Option<RetryPolicy>;
}

/// The handler of one kind.
pub(super) struct KindRoute<H, Arguments> {
    handler: H,
    arguments: PhantomData<fn() -> Arguments>,
}

impl<H, Arguments> KindRoute<H, Arguments> {
    pub(super) fn new(handler: H) -> Self {
        Self { handler, arguments: PhantomData }
    }
}

impl<S: Sync, Arguments, H: JobHandler<Arguments, S>> Route<S>
    for KindRoute<H, Arguments>
{
    fn handle<'a>(
        &'a self,
        job: JobContext,
        state: &'a S,
    ) -> Result<Attempt<'a>, Undecodable> {
        let value = decode(&job)?;
        Ok(Box::pin(async move { self.handler.handle(value, &job, state).await }))
    }

    fn ready_for(
        &self,
        jobs: usize,
        _context: &mut Context<'_>,
    ) -> Result<usize, Failure> {
        Ok(jobs)
    }

    fn timeout(&self, _job: &JobContext) -> Option<Duration> {
        H::Job::timeout()
    }

    fn retry_policy(&self, _job: &JobContext) -> Option<RetryPolicy> {
        H::Job::retry_policy()
    }
}

fn decode<T: Job>(job: &JobContext) -> Result<T, Undecodable> {
    serde_json::from_slice(job.payload()).map_err(|error| {
        let kind = T::KIND;
        Undecodable(format!("the payload does not fit the kind {kind:?}: {error}"))
    })
}

/// The handler of the jobs without a kind.
pub(super) struct RawRoute<H>(pub(super) H);

impl<S, H: Handler> Route<S> for RawRoute<H> {
    fn handle<'a>(
        &'a self,
        job: JobContext,
        _state: &'a S,
    ) -> Result<Attempt<'a>, Undecodable> {
        Ok(Box::pin(self.0.handle(job)))
    }

    fn ready_for(
        &self,
        jobs: usize,
        context: &mut Context<'_>,
    ) -> Result<usize, Failure> {
        self.0.ready_for(jobs, context)
    }

    fn timeout(&self, job: &JobContext) -> Option<Duration> {
        self.0.timeout(job)
    }

    fn retry_policy(&self, job: &JobContext) -> Option<RetryPolicy> {
        self.0.retry_policy(job)
    }
}

/// A handler together with the state that it needs.
pub(super) struct StatefulRoute<S> {
    pub(super) route: Arc<dyn Route<S>>,
    pub(super) state: Arc<S>,
}

impl<S: Send + Sync> Route<()> for StatefulRoute<S> {
    fn handle<'a>(
        &'a self,
        job: JobContext,
        _state: &'a (),
    ) -> Result<Attempt<'a>, Undecodable> {
        self.route.handle(job, &self.state)
    }

    fn ready_for(
        &self,
        jobs: usize,
        context: &mut Context<'_>,
    ) -> Result<usize, Failure> {
        self.route.ready_for(jobs, context)
    }

    fn timeout(&self, job: &JobContext) -> Option<Duration> {
        self.route.timeout(job)
    }

    fn retry_policy(&self, job: &JobContext) -> Option<RetryPolicy> {
        self.route.retry_policy(job)
    }
}
