//! Overrides of the calls on results, each with one bug.

use std::time::Duration;

use async_trait::async_trait;
use relq_conformance::overrides::{Override, Right};
use relq_core::{
    outcome::Settled,
    results::{JobResult, Reported},
    *,
};

/// Tells a worker that its report is stored although the lease was lost.
pub(crate) struct StoresAnyReport;

#[async_trait]
impl Override for StoresAnyReport {
    async fn report_progress(
        &self,
        right: &Right,
        receipt: &Receipt,
        progress: &[u8],
    ) -> Result<Reported, Error> {
        let reported = right.results().report_progress(receipt, progress).await?;
        Ok(if reported == Reported::LeaseLost { Reported::Stored } else { reported })
    }
}

/// Reads a result now and then while it waits.
pub(crate) struct PollsForResults;

#[async_trait]
impl Override for PollsForResults {
    async fn wait_result(
        &self,
        right: &Right,
        job: &JobId,
        timeout: Duration,
    ) -> Result<Option<JobResult>, Error> {
        const PAUSE: Duration = Duration::from_secs(5);
        let clock = right.environment.clock();
        let deadline = clock.elapsed() + timeout;
        loop {
            let told = right.results().wait_result(job, Duration::ZERO).await?;
            let left = deadline.saturating_sub(clock.elapsed());
            if left.is_zero() || told.as_ref().is_none_or(JobResult::has_ended) {
                return Ok(told);
            }
            clock.sleep(left.min(PAUSE)).await;
        }
    }
}

/// Stores the results of one call in reverse order.
pub(crate) struct GivesResultsToOthers;

#[async_trait]
impl Override for GivesResultsToOthers {
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let result = |one: &Settlement| match &one.disposition {
            Disposition::DoneWith { result } => Some(result.clone()),
            _ => None,
        };
        let mut results = done.iter().rev().filter_map(result);
        let swapped = done.iter().map(|one| match &one.disposition {
            Disposition::DoneWith { .. } => {
                let result = results.next().unwrap_or_default();
                let disposition = Disposition::DoneWith { result };
                Settlement::new(one.receipt.clone(), disposition)
            }
            _ => one.clone(),
        });
        let swapped: Vec<_> = swapped.collect();
        right.settle(&swapped).await
    }
}

/// Returns the results of one call in reverse order.
pub(crate) struct ReadsBackwards;

#[async_trait]
impl Override for ReadsBackwards {
    async fn read_results(
        &self,
        right: &Right,
        jobs: &[JobId],
    ) -> Result<Vec<Option<JobResult>>, Error> {
        let mut told = right.results().read_results(jobs).await?;
        told.reverse();
        Ok(told)
    }
}
