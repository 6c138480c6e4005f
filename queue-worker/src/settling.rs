//! What handlers said and the store does not know yet.
//!
//! Verdicts gather here while the last call is under way. A call that failed keeps its
//! batch together and is made again, until it works or the leases are over; a verdict
//! is never dropped without a word, and never turned into another (sidekiq#4138). What
//! fails again goes by turns with what is new, and each verdict by itself: a store that
//! takes no retries, say, still takes what is done.

use std::{collections::VecDeque, sync::Arc, time::Duration};

use queue_core::{Environment, Error, Happened, Settled, Settlement, Verdict};

use crate::{
    JobContext, Progress, WorkerError, context::LeaseEnd, held::Held, trouble::Trouble,
};

/// Settlements that go out in one call, and the jobs that they are of.
#[derive(Default)]
pub(crate) struct Batch {
    settlements: Arc<Vec<Settlement>>,
    jobs: Vec<JobContext>,
    /// Whether an earlier call may have carried it out, its answer lost.
    is_uncertain: bool,
    has_failed: bool,
}

pub(crate) struct Settling {
    fresh: Batch,
    failed: VecDeque<Batch>,
    /// Whether what is new goes before what has failed.
    is_freshs_turn: bool,
    held: Arc<Held>,
    progress: Progress,
    pub(crate) trouble: Trouble,
}

impl Settling {
    pub(crate) fn new(
        held: Arc<Held>,
        progress: Progress,
        environment: Environment,
    ) -> Self {
        Self {
            fresh: Batch::default(),
            failed: VecDeque::new(),
            is_freshs_turn: false,
            held,
            progress,
            trouble: Trouble::new("settling", environment),
        }
    }

    pub(crate) fn add(&mut self, job: JobContext, verdict: Verdict) {
        self.fresh.push(Settlement::new(job.receipt().clone(), verdict), job);
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.fresh.is_empty() && self.failed.is_empty()
    }

    /// How many verdicts no call has carried yet.
    pub(crate) fn fresh(&self) -> usize {
        self.fresh.jobs.len()
    }

    /// What the next call carries; `None` when there is nothing, or a pause.
    pub(crate) fn next_batch(&mut self, max: usize) -> Option<Batch> {
        let batch = self.waiting_batch(max)?;
        batch.jobs.iter().for_each(JobContext::settling);
        Some(batch)
    }

    fn waiting_batch(&mut self, max: usize) -> Option<Batch> {
        if self.trouble.is_pausing() {
            return None;
        }
        let is_freshs_turn = std::mem::replace(&mut self.is_freshs_turn, false);
        if !is_freshs_turn || self.fresh.is_empty() {
            while let Some(batch) = self.failed.pop_front() {
                let batch = self.without_lost(batch);
                if !batch.is_empty() {
                    self.is_freshs_turn = true;
                    return Some(batch);
                }
            }
        }
        if self.fresh.is_empty() {
            return None;
        }
        let rest = self.fresh.split_off(max);
        Some(std::mem::replace(&mut self.fresh, rest))
    }

    pub(crate) fn answered(
        &mut self,
        batch: Batch,
        result: Result<Vec<Settled>, Error>,
        give_up_after: Duration,
    ) -> Result<(), WorkerError> {
        match result {
            Ok(settled) => self.settled(&batch, &settled),
            Err(error) => {
                self.not_settled(batch, &error);
                // A request that is refused for what it asks is let go of.
                let is_kept = !is_refused(&error);
                if is_kept && self.trouble.is_hopeless(&error, give_up_after) {
                    return Err(WorkerError::Store(error));
                }
            }
        }
        Ok(())
    }

    /// Gives up what is left, and what calls that were abandoned carried; says so.
    pub(crate) fn give_up(&mut self, abandoned: impl Iterator<Item = Batch>) {
        let fresh = std::mem::take(&mut self.fresh);
        for batch in self.failed.drain(..).chain([fresh]).chain(abandoned) {
            for job in &batch.jobs {
                lost(&self.progress, job, "the worker ended before it was settled");
            }
        }
    }

    fn settled(&mut self, batch: &Batch, settled: &[Settled]) {
        self.trouble.works_in_part();
        // Another call may have failed meanwhile.
        if self.failed.is_empty() {
            self.trouble.is_over();
        }
        self.held.remove(&batch.jobs);
        let pairs = batch.jobs.iter().zip(&*batch.settlements).enumerate();
        for (index, (job, settlement)) in pairs {
            match settled.get(index) {
                Some(Settled::Applied) => {
                    self.progress.applied(job, &settlement.verdict);
                }
                // The call that failed may have done it; that a lease is lost in the
                // same moment is less likely, but possible.
                Some(Settled::LeaseLost) if batch.is_uncertain => {
                    lost(
                        &self.progress,
                        job,
                        "it may have been settled by a lost call",
                    );
                }
                Some(Settled::LeaseLost) => {
                    lost(
                        &self.progress,
                        job,
                        "the lease was lost before it was settled",
                    );
                }
                None => lost(&self.progress, job, "the store did not answer for it"),
            }
        }
    }

    fn not_settled(&mut self, mut batch: Batch, error: &Error) {
        batch.is_uncertain |= error.happened() != Happened::No;
        // Of a store that is away each would fail as all did.
        let is_away =
            matches!(error, Error::Unavailable { .. } | Error::ReadOnly { .. });
        let has_failed_again =
            std::mem::replace(&mut batch.has_failed, true) && !is_away;
        batch.jobs.iter().for_each(JobContext::settling_failed);
        self.trouble.failed(error);
        let is_refused = is_refused(error);
        if batch.jobs.len() > 1 && (is_refused || has_failed_again) {
            // One settlement must not spoil the others.
            self.failed.extend(batch.into_singles());
        } else if !is_refused {
            self.failed.push_back(batch);
        } else {
            self.held.remove(&batch.jobs);
            for job in &batch.jobs {
                lost(&self.progress, job, "the store refuses its settlement");
            }
        }
    }

    /// Drops what lost its lease while it waited: nothing is settled for it (R7).
    fn without_lost(&self, batch: Batch) -> Batch {
        if batch.jobs.iter().all(|job| job.lease_end().is_none()) {
            return batch;
        }
        let Batch { is_uncertain, has_failed, .. } = batch;
        let mut kept = Batch { is_uncertain, has_failed, ..Batch::default() };
        for (job, settlement) in batch.into_pairs() {
            match job.lease_end() {
                None => kept.push(settlement, job),
                Some(LeaseEnd::Cancelled) => self.progress.ended(LeaseEnd::Cancelled),
                Some(LeaseEnd::Lost) => {
                    lost(&self.progress, &job, "it could not be settled in time");
                }
            }
        }
        kept
    }
}

impl Batch {
    pub(crate) fn is_empty(&self) -> bool {
        self.jobs.is_empty()
    }

    /// What a call carries. Shared with it, so that a call that is given up leaves its
    /// batch behind.
    pub(crate) fn settlements(&self) -> Arc<Vec<Settlement>> {
        Arc::clone(&self.settlements)
    }

    fn push(&mut self, settlement: Settlement, job: JobContext) {
        Arc::make_mut(&mut self.settlements).push(settlement);
        self.jobs.push(job);
    }

    fn split_off(&mut self, at: usize) -> Self {
        let at = at.min(self.jobs.len());
        Self {
            settlements: Arc::new(Arc::make_mut(&mut self.settlements).split_off(at)),
            jobs: self.jobs.split_off(at),
            is_uncertain: self.is_uncertain,
            has_failed: self.has_failed,
        }
    }

    fn into_pairs(self) -> impl Iterator<Item = (JobContext, Settlement)> {
        let settlements = Arc::unwrap_or_clone(self.settlements);
        self.jobs.into_iter().zip(settlements)
    }

    fn into_singles(self) -> impl Iterator<Item = Self> {
        let Self { is_uncertain, has_failed, .. } = self;
        self.into_pairs().map(move |(job, settlement)| Self {
            settlements: Arc::new(vec![settlement]),
            jobs: vec![job],
            is_uncertain,
            has_failed,
        })
    }
}

/// Whether a call was refused for what it asks.
fn is_refused(error: &Error) -> bool {
    matches!(error, Error::Invalid { .. } | Error::Unsupported { .. })
}

fn lost(progress: &Progress, job: &JobContext, why: &str) {
    progress.ended(LeaseEnd::Lost);
    let (id, attempt) = (job.id(), job.attempt());
    tracing::warn!(%id, attempt, "the outcome of a job is lost: {why}");
}

#[cfg(test)]
mod tests {
    use queue_core::{At, Delivery, JobId, Operation, Receipt};

    use super::*;

    fn job(name: &str) -> JobContext {
        let receipt = Receipt::new(JobId::new(name).unwrap(), 1, name.to_owned());
        let delivery = Delivery::new(receipt, "", Duration::from_secs(30));
        JobContext::held_until(delivery, Duration::MAX)
    }

    /// Of two calls under way one fails: that the other works is no reason to send the
    /// failed one again at once.
    #[test]
    fn what_works_beside_does_not_end_a_pause() {
        let held = Arc::new(Held::new(None, Duration::ZERO));
        let mut settling =
            Settling::new(held, Progress::default(), Environment::default());
        settling.add(job("fails"), Verdict::Done);
        settling.add(job("works"), Verdict::Done);
        let (fails, works) = (settling.next_batch(1), settling.next_batch(1));

        let at = At { backend: "test", operation: Operation::Settle };
        let away = Error::Unavailable { at, source: "away".into() };
        let limit = Duration::ZERO;
        settling.answered(fails.unwrap(), Err(away), limit).unwrap();
        settling.answered(works.unwrap(), Ok(vec![Settled::Applied]), limit).unwrap();

        assert!(settling.trouble.is_pausing());
        assert!(settling.next_batch(1).is_none());
    }
}
