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
