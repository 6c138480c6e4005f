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

#[cfg(test)]
mod tests {
    use crate::claim_loop::tests::{claim_loop, job};

    use super::*;

    /// R6: a job that waited for a thread until its lease may have expired is given back, so
    /// that no attempt counts. No heartbeat extends its lease meanwhile.
    #[test]
    fn a_job_that_was_not_started_is_given_back() {
        let (mut claim_loop, job) = (claim_loop(), job("late"));
        claim_loop.held.add(std::slice::from_ref(&job), Duration::ZERO);

        claim_loop.ended(job, Ended::NotStarted);

        assert_eq!(claim_loop.held.next_end(), None, "the lease is extended");
        let call = claim_loop.settling.next_settle_call(1).expect("a settlement");
        let disposition = &call.settlements()[0].disposition;
        assert!(matches!(disposition, Disposition::GiveBack), "{disposition:?}");
    }
}
