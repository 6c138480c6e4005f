//! From the end of an attempt to its settlement.

use std::time::Duration;

use relq_core::Disposition;

use super::ClaimLoop;
use crate::{
    JobContext,
    attempt::Ended,
    calls::slots,
    failure::{Failure, Then},
};

impl ClaimLoop {
    /// Handles an attempt that has ended, and all others that have ended by now, so
    /// that one call settles them all.
    pub(super) fn all_ended(&mut self, job: JobContext, ended: Ended) {
        self.attempt_ended(job, ended);
        self.more_ended();
    }

    /// Collects more attempts that have ended, up to the number that one call settles.
    pub(super) fn more_ended(&mut self) {
        while self.settling.fresh() < slots(self.share())
            && let Some((job, ended)) = self.slots.try_ended()
        {
            self.attempt_ended(job, ended);
        }
    }

    fn attempt_ended(&mut self, job: JobContext, ended: Ended) {
        self.ended(job, ended);
        self.start_waiting();
    }

    pub(super) fn ended(&mut self, job: JobContext, ended: Ended) {
        if let Some(end) = job.lease_end() {
            self.settings.observers.ended(&job, end.into());
            return;
        }
        match ended {
            Ended::Answered(Ok(())) => {
                let disposition = done(&job);
                self.settle(job, disposition);
            }
            Ended::Answered(Err(failure)) => {
                let disposition = self.disposition(&job, failure);
                self.settle(job, disposition);
            }
            Ended::NotStarted => {
                self.held.remove([&job]);
                self.give_back_unstarted(job);
            }
            Ended::CutOff => self.give_back(job),
        }
    }

    pub(super) fn settle(&mut self, job: JobContext, disposition: Disposition) {
        self.settling.add(job, disposition);
    }

    fn disposition(&self, job: &JobContext, failure: Failure) -> Disposition {
        log_failure(job, &failure);
        match failure.then {
            Then::Retry => Disposition::Retry {
                after: self.retry_delay(job),
                error: failure.into_message(),
            },
            Then::RetryAfter(after) => {
                Disposition::Retry { after, error: failure.into_message() }
            }
            Then::Bury => Disposition::Dead { error: failure.into_message() },
            Then::Discard => Disposition::Discard,
            Then::Postpone(after) => Disposition::Postpone { after },
        }
    }

    pub(super) fn retry_delay(&self, job: &JobContext) -> Duration {
        let random = self.settings.environment.random();
        self.slots.retry_policy(job).delay(job.attempt(), random)
    }
}

/// The disposition of a job whose handler returned `Ok`.
fn done(job: &JobContext) -> Disposition {
    job.result().map_or(Disposition::Done, |result| Disposition::DoneWith { result })
}

fn log_failure(job: &JobContext, failure: &Failure) {
    let (id, attempt, message) = (job.id(), job.attempt(), failure.message());
    match failure.then {
        Then::Postpone(after) => {
            tracing::info!(%id, ?after, reason = message, "a job is postponed");
        }
        _ => tracing::info!(%id, attempt, error = message, "an attempt failed"),
    }
}
