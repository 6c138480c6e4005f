//! Helpers and assertions for the cases of results.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{
    Delivery, Disposition, JobId, NewJob,
    outcome::Settled,
    results::{JobResult, Reported, ResultQueue},
};

use crate::harness::actor::Actor;

/// How long results are kept that a case does not let expire.
pub(super) const KEPT: Duration = Duration::from_secs(3600);

/// The record of a job that has not ended and of which no worker has reported.
pub(super) const UNFINISHED: JobResult = JobResult::Unfinished { progress: None };

/// A job whose result is kept for longer than the case takes.
pub(super) fn kept(payload: impl Into<Bytes>) -> NewJob {
    NewJob::new(payload).keep_result(KEPT)
}

/// The record of a job that is done with that result.
pub(super) fn done(result: impl Into<Bytes>) -> JobResult {
    JobResult::Done { result: result.into() }
}

/// The record of a job that has not ended, after that report.
pub(super) fn reported(progress: impl Into<Bytes>) -> JobResult {
    JobResult::Unfinished { progress: Some(progress.into()) }
}

pub(super) fn done_with(result: impl Into<Bytes>) -> Disposition {
    Disposition::DoneWith { result: result.into() }
}

impl Actor {
    /// Returns the queue's result calls. Panics if the backend keeps no results.
    pub(super) fn results(&self) -> &dyn ResultQueue {
        self.result_queue().expect("the backend keeps results")
    }

    /// Reads what became of jobs.
    pub(in crate::cases) async fn told_of(
        &self,
        jobs: &[JobId],
    ) -> Vec<Option<JobResult>> {
        let told = self.results().read_results(jobs).await;
        let told = told.expect("the call is answered");
        assert_eq!(told.len(), jobs.len(), "R29: one result for each id");
        told
    }

    /// Reads what became of a job.
    pub(in crate::cases) async fn result_of(&self, job: &JobId) -> Option<JobResult> {
        self.told_of(std::slice::from_ref(job)).await.remove(0)
    }

    /// Asserts that this is what became of a job so far.
    pub(in crate::cases) async fn assert_told(&self, job: &JobId, wanted: JobResult) {
        assert_eq!(self.result_of(job).await, Some(wanted), "R29: job {job}");
    }

    /// Asserts that nothing is recorded of a job.
    pub(super) async fn assert_untold(&self, job: &JobId) {
        assert_eq!(self.result_of(job).await, None, "R29: job {job}");
    }

    /// Reports progress of a job by the receipt of a delivery.
    pub(super) async fn reports(&self, held: &Delivery, progress: &[u8]) -> Reported {
        let reported = self.results().report_progress(&held.receipt, progress).await;
        reported.expect("the call is answered")
    }

    /// Reports progress of a job, and asserts that it is stored.
    pub(super) async fn shows(&self, held: &Delivery, progress: &'static [u8]) {
        let stored = self.reports(held, progress).await;
        assert_eq!(stored, Reported::Stored, "R29: the holder of job {}", held.job());
        self.assert_told(held.job(), reported(progress)).await;
    }

    /// Settles a job, and asserts that the settlement is applied.
    pub(in crate::cases) async fn ends(&self, held: &Delivery, by: Disposition) {
        let told = format!("R7: the holder's {by:?} of job {}", held.job());
        assert_eq!(self.say(held, by).await, Settled::Applied, "{told}");
    }
}
