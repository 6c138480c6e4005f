//! Jobs that are not started, because their leases may have expired before their claim's
//! reply was read (R6). [`claim_size`](crate::claim_size) decides what happens to them.

use relq_core::Disposition;

use super::{ClaimLoop, ClaimPhase};
use crate::{
    JobContext,
    claim_size::{Late, Sent},
    lease_clock::Moment,
};

impl ClaimLoop {
    /// Handles jobs that must not start because their leases may have expired (R6):
    /// gives them back or retries them.
    pub(super) fn not_started(
        &mut self,
        late: Vec<JobContext>,
        sent: Sent,
        now: Moment,
    ) {
        let took = sent.took(now);
        let Some(lease) = late.iter().map(JobContext::lease).min() else {
            if took < sent.wait.saturating_add(self.settings.lease) {
                self.claim_size.in_time();
            }
            return;
        };
        if self.phase == ClaimPhase::Stopping {
            return late.into_iter().for_each(|job| self.give_back(job));
        }
        let of_all = self.claim_size.late(sent, lease, now);
        let why = if took < lease {
            "the machine was suspended, or its clock set forward, during their claim"
        } else {
            "the answer to their claim took longer than their lease"
        };
        tracing::info!(
            jobs = late.len(),
            ?took,
            ?lease,
            at_once = self.claim_size.limit(),
            "jobs are not started: {why}",
        );
        for job in late {
            match of_all {
                Late::GiveBack => self.give_back_unstarted(job),
                Late::Retry => self.retry_unstarted(job),
            }
        }
    }

    pub(super) fn give_back_unstarted(&mut self, job: JobContext) {
        match self.claim_size.give_back(job.id()) {
            Late::GiveBack => self.give_back(job),
            Late::Retry => self.retry_unstarted(job),
        }
    }

    /// Retries a job that was not started. The attempt counts all the same, so that a
    /// job that is always late is buried in the end (R11).
    fn retry_unstarted(&mut self, job: JobContext) {
        let (id, attempt, lease) = (job.id(), job.attempt(), job.lease());
        let asked = job.until().saturating_sub(lease);
        let took = self.now().lease_time.saturating_sub(asked);
        tracing::warn!(
            %id,
            attempt,
            ?took,
            ?lease,
            "a job is not started and its attempt counts: answers take longer than its \
             lease also with one job at a time; give it a longer lease, and keep handlers \
             from blocking the runtime",
        );
        let error = format!(
            "not started: it came {took:?} after its lease was asked for, and the lease \
             is {lease:?}"
        );
        let after = self.retry_delay(&job);
        self.settle(job, Disposition::Retry { after, error });
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use relq_core::{Delivery, JobId, Receipt};

    use super::*;
    use crate::claim_loop::tests::{LEASE, NOW, claim_loop_of, settings};

    /// A claim that was sent when the worker had run for `at`, and did not wait for a job.
    fn sent(at: Duration) -> Sent {
        Sent { at: Moment::awake(at), wait: Duration::ZERO }
    }

    fn job(lease: Duration) -> JobContext {
        let receipt = Receipt::new(JobId::new("job").unwrap(), 1, "token");
        JobContext::held_until(Delivery::new(receipt, "", lease), NOW)
    }

    /// R11: a worker claims half as many jobs after a reply that took longer than the lease,
    /// and twice as many again after one that took less.
    #[test]
    fn a_reply_in_time_lets_the_worker_claim_more_again() {
        let mut claim_loop = claim_loop_of(settings(16), None);
        claim_loop.not_started(
            vec![job(LEASE)],
            sent(Duration::ZERO),
            Moment::awake(LEASE),
        );
        assert_eq!(claim_loop.claim_size.limit(), 8, "after a late reply");

        claim_loop.not_started(Vec::new(), sent(LEASE), Moment::awake(LEASE * 2));
        assert_eq!(claim_loop.claim_size.limit(), 8, "after another one");
        let soon = LEASE + Duration::from_secs(1);
        claim_loop.not_started(Vec::new(), sent(LEASE), Moment::awake(soon));

        assert_eq!(claim_loop.claim_size.limit(), 16, "after one in time");
    }

    /// R11: the reply was late for the shorter of two leases. The longer one expired only
    /// because the machine was suspended.
    #[test]
    fn a_reply_that_is_late_for_one_of_its_leases_is_late() {
        let mut claim_loop = claim_loop_of(settings(16), None);
        let took = LEASE;
        let replied = Moment { lease_time: LEASE * 10, steady_time: took };

        let late = vec![job(LEASE * 3), job(took)];
        claim_loop.not_started(late, sent(Duration::ZERO), replied);

        assert_eq!(claim_loop.claim_size.limit(), 8, "half as many");
    }

    /// R11: the error of a job that was never started says how long its delivery took.
    #[test]
    fn the_error_of_a_late_job_says_how_late_it_came() {
        let mut claim_loop = claim_loop_of(settings(1), None);

        claim_loop.retry_unstarted(job(LEASE));

        let call = claim_loop.settling.next_settle_call(1).unwrap();
        let Disposition::Retry { error, .. } = &call.settlements()[0].disposition
        else {
            panic!("the attempt does not count");
        };
        let expected = "not started: it came 30s after its lease was asked for, and the \
                        lease is 30s";
        assert_eq!(error, expected, "the error of the job");
    }
}
