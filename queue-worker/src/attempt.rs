//! One run of the handler, within its limits.

use std::future::pending;

use relq_core::environment::Environment;

use crate::{Cancellation, Failure, Handler, JobContext, settings::Settings};

/// How an attempt ended.
pub(crate) enum Ended {
    /// The handler returned a result, or panicked.
    Answered(Result<(), Failure>),
    /// The handler was not called, because the lease may have expired before.
    NotStarted,
    /// The handler's future was dropped at the end of the grace time.
    CutOff,
}

/// The handler and the limits that all attempts of a worker share.
pub(crate) struct Program<H> {
    pub(crate) handler: H,
    pub(crate) settings: Settings,
}

impl<H: Handler> Program<H> {
    /// Runs the handler until it ends, its time limit passes, or the grace time passes
    /// after it was asked to stop. In the last two cases its future is dropped.
    pub(crate) async fn attempt(&self, job: JobContext) -> Ended {
        tokio::select! {
            biased;
            ended = self.work(&job) => ended,
            failure = self.time_out(&job) => Ended::Answered(Err(failure)),
            failure = self.patience(&job) => Ended::Answered(Err(failure)),
        }
    }

    async fn work(&self, job: &JobContext) -> Ended {
        if !self.may_start(job) {
            return Ended::NotStarted;
        }
        if let Some(check) = self.settings.already_done.as_ref()
            && job.is_redelivery()
        {
            match check.is_done(job.clone()).await {
                Ok(false) if self.may_start(job) => {}
                Ok(false) => return Ended::NotStarted,
                answer => return Ended::Answered(answer.map(|_is_done| ())),
            }
        }
        Ended::Answered(self.handler.handle(job.clone()).await)
    }

    /// A job waits for a thread, and for its already-done check, while its lease runs.
    /// When the lease may have expired, another worker may start the job, so this one
    /// must not (R6).
    fn may_start(&self, job: &JobContext) -> bool {
        let now = self.environment().clock().elapsed();
        job.lease_end().is_none() && !job.may_be_over(now)
    }

    async fn time_out(&self, job: &JobContext) -> Failure {
        let Some(limit) = self.settings.timeout else {
            return pending().await;
        };
        self.environment().clock().sleep(limit).await;
        job.cancel(Cancellation::TimedOut);
        Failure::retry(format!("the handler took longer than its limit of {limit:?}"))
    }

    /// Only a job without a lease reaches this end. Nothing is settled, so the message
    /// does not matter.
    async fn patience(&self, job: &JobContext) -> Failure {
        job.cancelled().await;
        self.environment().clock().sleep(self.settings.grace).await;
        Failure::retry("the handler did not end when it was asked to")
    }

    fn environment(&self) -> &Environment {
        &self.settings.environment
    }
}
