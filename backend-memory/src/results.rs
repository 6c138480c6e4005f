//! The results and the progress of jobs of a queue in memory (R29).

use std::time::Duration;

use async_trait::async_trait;
use relq_core::{
    Bytes, Error, JobId, Receipt,
    environment::Timestamp,
    error::Operation,
    results::{JobResult, Reported, ResultQueue},
};

use crate::{
    job::{Job, StoredState},
    queue::{CAPABILITIES, MemoryQueue, POLL},
    state::State,
};

/// The record of a job that keeps its result, from its push on.
#[derive(Debug, Clone)]
pub(crate) enum KeptResult {
    /// The job has not ended. If it is dead, the job itself says why.
    Unfinished {
        progress: Option<Bytes>,
    },
    Ended {
        result: JobResult,
        until: Timestamp,
    },
}

#[async_trait]
impl ResultQueue for MemoryQueue {
    async fn report_progress(
        &self,
        receipt: &Receipt,
        progress: &[u8],
    ) -> Result<Reported, Error> {
        CAPABILITIES.check_progress(progress)?;
        let progress = Bytes::copy_from_slice(progress);
        Ok(self.step(|state, _| state.report_progress(receipt, progress)))
    }

    async fn read_results(
        &self,
        jobs: &[JobId],
    ) -> Result<Vec<Option<JobResult>>, Error> {
        CAPABILITIES.check_batch(Operation::ReadResults, jobs.len())?;
        Ok(self.step(|state, now| {
            jobs.iter().map(|job| state.read_result(job, now)).collect()
        }))
    }

    async fn wait_result(
        &self,
        job: &JobId,
        timeout: Duration,
    ) -> Result<Option<JobResult>, Error> {
        CAPABILITIES.check_wait_result(timeout)?;
        let give_up = self.clock().elapsed().saturating_add(timeout);
        loop {
            let found = self.step(|state, now| state.read_result(job, now));
            let left = give_up.saturating_sub(self.clock().elapsed());
            if left.is_zero() || found.as_ref().is_none_or(JobResult::has_ended) {
                return Ok(found);
            }
            self.clock().sleep(left.min(POLL)).await;
        }
    }
}

impl KeptResult {
    /// The record of a job that was just pushed.
    pub(crate) const NEW: Self = Self::Unfinished { progress: None };

    /// Whether the result was kept long enough.
    pub(crate) fn is_outdated(&self, now: Timestamp) -> bool {
        matches!(self, Self::Ended { until, .. } if *until <= now)
    }
}

impl State {
    fn report_progress(&mut self, receipt: &Receipt, progress: Bytes) -> Reported {
        if self.held(receipt).is_none() {
            return Reported::LeaseLost;
        }
        match self.results.get_mut(receipt.job()) {
            Some(kept @ KeptResult::Unfinished { .. }) => {
                *kept = KeptResult::Unfinished { progress: Some(progress) };
                Reported::Stored
            }
            _ => Reported::NotKept,
        }
    }

    /// Removes the progress of a dead job that is redriven.
    pub(crate) fn forget_progress(&mut self, job: &JobId) {
        if let Some(kept @ KeptResult::Unfinished { .. }) = self.results.get_mut(job) {
            *kept = KeptResult::NEW;
        }
    }

    fn read_result(&self, id: &JobId, now: Timestamp) -> Option<JobResult> {
        match self.results.get(id)? {
            kept if kept.is_outdated(now) => None,
            KeptResult::Ended { result, .. } => Some(result.clone()),
            KeptResult::Unfinished { progress } => {
                let error = self.jobs.values().find(|job| job.id == *id).and_then(why);
                Some(match error {
                    Some(error) => JobResult::Dead { error },
                    None => JobResult::Unfinished { progress: progress.clone() },
                })
            }
        }
    }
}

fn why(job: &Job) -> Option<String> {
    match &job.state {
        StoredState::Dead { reason, .. } => Some(reason.clone()),
        _ => None,
    }
}
