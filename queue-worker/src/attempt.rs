//! One run of the handler, within its limits.

use std::future::pending;

use queue_core::Environment;

use crate::{Cancellation, Failure, Handler, JobContext, settings::Settings};

/// What every attempt of a worker shares.
pub(crate) struct Program<H> {
    pub(crate) handler: H,
    pub(crate) settings: Settings,
}

impl<H: Handler> Program<H> {
    /// Runs the handler until it ends, its time is up, or it was asked to stop and
    /// did not within the grace time; then its future is dropped.
    pub(crate) async fn attempt(&self, job: JobContext) -> Result<(), Failure> {
        tokio::select! {
            biased;
            result = self.work(&job) => result,
            failure = self.time_out(&job) => Err(failure),
            failure = self.patience(&job) => Err(failure),
        }
    }

    async fn work(&self, job: &JobContext) -> Result<(), Failure> {
        if let Some(check) = self.settings.already_done.as_ref()
            && job.is_redelivery()
            && check.is_done(job.clone()).await?
        {
            return Ok(());
        }
        self.handler.handle(job.clone()).await
    }

    async fn time_out(&self, job: &JobContext) -> Failure {
        let Some(limit) = self.settings.timeout else {
            return pending().await;
        };
        self.environment().clock().sleep(limit).await;
        job.cancel(Cancellation::TimedOut);
        Failure::retry(format!("the handler took longer than its limit of {limit:?}"))
    }

    /// Only a job without a lease gets here: nothing is settled, whatever it says.
    async fn patience(&self, job: &JobContext) -> Failure {
        job.cancelled().await;
        self.environment().clock().sleep(self.settings.grace).await;
        Failure::retry("the handler did not end when it was asked to")
    }

    fn environment(&self) -> &Environment {
        &self.settings.environment
    }
}
