//! The calls that find jobs and workers, of a queue with one deliberate fault.

use std::num::NonZeroU32;

use async_trait::async_trait;
use relq_core::{
    Error, JobId,
    operator::{InspectQueue, JobLookup, PageCursor, RunNow, WorkersPage},
};

use super::{OverriddenQueue, Right};

impl Right {
    /// Returns the calls of the queue that find jobs and workers.
    ///
    /// # Panics
    /// When the queue has none. Then the queue with overrides has none either.
    pub fn inspector(&self) -> &dyn InspectQueue {
        self.queue.inspect_queue().expect("the healthy queue finds jobs")
    }
}

#[async_trait]
impl InspectQueue for OverriddenQueue {
    async fn job(&self, job: &JobId) -> Result<JobLookup, Error> {
        self.overrides.job(&self.right, job).await
    }

    async fn run_now(&self, job: &JobId) -> Result<RunNow, Error> {
        self.overrides.run_now(&self.right, job).await
    }

    async fn workers(
        &self,
        after: Option<&PageCursor>,
        limit: NonZeroU32,
    ) -> Result<WorkersPage, Error> {
        self.overrides.workers(&self.right, after, limit).await
    }
}
