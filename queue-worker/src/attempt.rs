//! Runs the handler on one job, within the time limit and the grace time.

use std::future::pending;

use relq_core::{environment::Environment, limits::MAX_DURATION};

use crate::{
    Cancellation, Failure, JobContext, handler::AnyHandler, readiness::Unstarted,
    settings::Settings,
};

/// How an attempt ended.
pub(crate) enum Ended {
    /// The handler returned a result, or panicked.
    Answered(Result<(), Failure>),
    /// The handler was not called, because the lease may have expired before its start.
    NotStarted,
    /// The handler's future was dropped at the end of the grace time.
    CutOff,
}

/// The handler and the limits that all attempts on one queue share. The queues of a
/// worker share the handler.
pub(crate) struct Program {
    pub(crate) handler: AnyHandler,
    pub(crate) settings: Settings,
}

impl Program {
    /// Runs the handler until it ends. Drops its future earlier if its time limit
    /// passes, or if the grace time passes after it was asked to stop.
    pub(crate) async fn attempt(&self, job: JobContext, unstarted: Unstarted) -> Ended {
        tokio::select! {
            biased;
            ended = self.work(&job, unstarted) => ended,
            failure = self.time_out(&job) => Ended::Answered(Err(failure)),
            failure = self.grace_time_over(&job) => Ended::Answered(Err(failure)),
        }
    }

    async fn work(&self, job: &JobContext, unstarted: Unstarted) -> Ended {
        if !self.may_start(job) {
            return Ended::NotStarted;
        }
        let _running = self.settings.observers.started(job, self.environment());
        if let Some(check) = self.settings.already_done.as_ref()
            && (self.settings.checks_every_delivery || job.is_redelivery())
        {
            match check.is_done(job.clone()).await {
                Ok(false) if self.may_start(job) => {}
                Ok(false) => return Ended::NotStarted,
                answer => return Ended::Answered(answer.map(|_is_done| ())),
            }
        }
        let answer = self.handler.handle_boxed(job.clone());
        drop(unstarted);
        Ended::Answered(answer.await)
    }

    /// Whether the handler may start, because the lease has surely not expired. While
    /// the lease runs, a job may wait for a free thread or for its already-done check.
    /// If the lease may have expired, another worker may start the job, so this worker
    /// must not start it (R6).
    fn may_start(&self, job: &JobContext) -> bool {
        let now = self.settings.lease_clock.elapsed();
        job.lease_end().is_none() && !job.may_be_over(now)
    }

    async fn time_out(&self, job: &JobContext) -> Failure {
        let Some(limit) = self.handler.timeout(job).or(self.settings.timeout) else {
            return pending().await;
        };
        let limit = limit.min(MAX_DURATION);
        self.environment().clock().sleep(limit).await;
        job.cancel(Cancellation::TimedOut);
        Failure::retry(format!("the handler took longer than its limit of {limit:?}"))
    }

    /// Waits until the handler was asked to stop and the grace time has passed. The
    /// returned failure has no effect, because a job without a lease is not settled.
    async fn grace_time_over(&self, job: &JobContext) -> Failure {
        job.cancelled().await;
        self.environment().clock().sleep(self.settings.grace).await;
        Failure::retry("the handler did not end when it was asked to")
    }

    fn environment(&self) -> &Environment {
        &self.settings.environment
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use relq_core::{Delivery, JobId, Receipt};

    use super::*;
    use crate::{already_done::Check, context::LeaseEnd, readiness::Readiness};

    /// A handler may have passed its token to another task, which ends only by the
    /// token.
    #[tokio::test]
    async fn the_time_limit_cancels_the_token() {
        let timeout = Some(Duration::from_millis(1));
        let settings = Settings { timeout, ..Settings::default() };
        let handler = Arc::new(|_: JobContext| pending::<Result<(), Failure>>());
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        let job = JobContext::new(Delivery::new(receipt, "", Duration::from_secs(30)));
        let token = job.token();

        let unstarted = Readiness::default().unstarted();
        let ended = Program { handler, settings }.attempt(job.clone(), unstarted).await;

        assert!(matches!(ended, Ended::Answered(Err(_))), "the attempt failed");
        assert_eq!(job.cancellation(), Some(Cancellation::TimedOut), "the reason");
        assert!(token.is_cancelled());
    }

    /// R6: a job may wait for a thread of the runtime until its lease may have expired.
    /// Another worker may run it by then.
    #[tokio::test]
    async fn a_job_whose_lease_may_have_expired_is_not_started() {
        let handler = Arc::new(async |_: JobContext| Ok::<_, Failure>(()));
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        let delivery = Delivery::new(receipt, "", Duration::from_secs(30));
        let job = JobContext::held_until(delivery, Duration::ZERO);

        let unstarted = Readiness::default().unstarted();
        let program = Program { handler, settings: Settings::default() };
        let ended = program.attempt(job, unstarted).await;

        assert!(matches!(ended, Ended::NotStarted), "the handler was called");
    }

    /// A handler whose lease is lost may still end by itself, within the grace time.
    #[tokio::test]
    async fn a_handler_that_is_asked_to_stop_gets_the_grace_time() {
        let handler = Arc::new(async |job: JobContext| {
            job.end_lease(LeaseEnd::Lost);
            job.cancelled().await;
            tokio::time::sleep(Duration::from_millis(10)).await;
            Ok::<_, Failure>(())
        });
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        let job = JobContext::new(Delivery::new(receipt, "", Duration::from_secs(30)));

        let unstarted = Readiness::default().unstarted();
        let program = Program { handler, settings: Settings::default() };
        let ended = program.attempt(job, unstarted).await;

        assert!(matches!(ended, Ended::Answered(Ok(()))), "the handler was dropped");
    }

    /// R6: the lease may expire while the application checks whether the work was done.
    #[tokio::test]
    async fn a_job_whose_lease_ends_during_its_check_is_not_started() {
        let handler = Arc::new(async |_: JobContext| Ok::<_, Failure>(()));
        let check = Check::new(async |job: JobContext| {
            job.end_lease(LeaseEnd::Lost);
            Ok::<_, Failure>(false)
        });
        let settings = Settings {
            already_done: Some(check),
            checks_every_delivery: true,
            ..Settings::default()
        };
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        let job = JobContext::new(Delivery::new(receipt, "", Duration::from_secs(30)));

        let unstarted = Readiness::default().unstarted();
        let ended = Program { handler, settings }.attempt(job, unstarted).await;

        assert!(matches!(ended, Ended::NotStarted), "the handler was called");
    }
}
