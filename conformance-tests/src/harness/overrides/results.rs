//! The result calls of a queue with overrides.

use std::time::Duration;

use async_trait::async_trait;
use relq_core::{
    Error, JobId, Receipt,
    results::{JobResult, Reported, ResultQueue},
};

use super::{OverriddenQueue, Right};

impl Right {
    /// Returns the result calls of the queue.
    ///
    /// # Panics
    /// When the queue keeps no results. Then the queue with overrides keeps none either.
    pub fn results(&self) -> &dyn ResultQueue {
        self.queue.result_queue().expect("the healthy queue keeps results")
    }
}

#[async_trait]
impl ResultQueue for OverriddenQueue {
    async fn report_progress(
        &self,
        receipt: &Receipt,
        progress: &[u8],
    ) -> Result<Reported, Error> {
        self.overrides.report_progress(&self.right, receipt, progress).await
    }

    async fn read_results(
        &self,
        jobs: &[JobId],
    ) -> Result<Vec<Option<JobResult>>, Error> {
        self.overrides.read_results(&self.right, jobs).await
    }

    async fn wait_result(
        &self,
        job: &JobId,
        timeout: Duration,
    ) -> Result<Option<JobResult>, Error> {
        self.overrides.wait_result(&self.right, job, timeout).await
    }
}
