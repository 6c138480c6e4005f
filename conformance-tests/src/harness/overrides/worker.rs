//! The calls of producers and workers, of a queue with one deliberate fault.

use std::{num::NonZeroU32, sync::Arc, time::Duration};

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Error, NewJob, PushToken, Receipt, ReliableQueue,
    Settlement, WorkerId,
    batch::BatchQueue,
    capabilities::{Capabilities, Capability},
    operator::WorkerReport,
    outcome::{Extended, Pushed, Recovered, Released, Settled, SettledAndClaimed},
    results::ResultQueue,
    schedule::ScheduleQueue,
};

use super::OverriddenQueue;

#[async_trait]
impl ReliableQueue for OverriddenQueue {
    fn capabilities(&self) -> &Capabilities {
        self.overrides.capabilities(&self.right)
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        self.overrides.push(&self.right, jobs, token).await
    }

    fn part_of_job(&self, job: &NewJob) -> Result<Option<usize>, Error> {
        self.right.part_of_job(job)
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        self.overrides.claim(&self.right, ask).await
    }

    async fn wait_for_jobs(&self, limit: Duration) -> Result<(), Error> {
        self.overrides.wait_for_jobs(&self.right, limit).await
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        self.overrides.settle(&self.right, done).await
    }

    async fn settle_and_claim(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        self.overrides.settle_and_claim(&self.right, done, ask).await
    }

    async fn extend(
        &self,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        self.overrides.extend(&self.right, worker, held, lease).await
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        self.overrides.release_worker(&self.right, worker).await
    }

    async fn report_worker(&self, report: &WorkerReport) -> Result<(), Error> {
        self.overrides.report_worker(&self.right, report).await
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        self.overrides.recover(&self.right, page).await
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        self.right.open_another().await
    }

    fn batch_queue(&self) -> Option<&dyn BatchQueue> {
        let right = self.right_with(Capability::Batches)?;
        right.batch_queue().map(|_| self as &dyn BatchQueue)
    }

    fn schedule_queue(&self) -> Option<&dyn ScheduleQueue> {
        let right = self.right_with(Capability::Schedules)?;
        right.schedule_queue().map(|_| self as &dyn ScheduleQueue)
    }

    fn result_queue(&self) -> Option<&dyn ResultQueue> {
        let right = self.right_with(Capability::Results)?;
        right.result_queue().map(|_| self as &dyn ResultQueue)
    }
}
