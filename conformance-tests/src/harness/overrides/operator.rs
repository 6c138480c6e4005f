//! The calls of an operator, of a queue with one deliberate fault.

use async_trait::async_trait;
use relq_core::{
    Error, JobId, Operator, Stats,
    capabilities::Capability,
    operator::{
        Audit, Cancelled, InspectQueue, Page, PeekRequest, Redriven, RestoreQueue,
        Selection,
    },
};

use super::OverriddenQueue;

#[async_trait]
impl Operator for OverriddenQueue {
    async fn stats(&self) -> Result<Stats, Error> {
        self.overrides.stats(&self.right).await
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        self.overrides.peek(&self.right, ask).await
    }

    async fn redrive(&self, which: &Selection) -> Result<Redriven, Error> {
        self.overrides.redrive(&self.right, which).await
    }

    async fn purge_dead(&self, which: &Selection) -> Result<u64, Error> {
        self.overrides.purge_dead(&self.right, which).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.overrides.purge(&self.right).await
    }

    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error> {
        self.overrides.cancel(&self.right, job).await
    }

    async fn pause(&self) -> Result<(), Error> {
        self.overrides.pause(&self.right).await
    }

    async fn resume(&self) -> Result<(), Error> {
        self.overrides.resume(&self.right).await
    }

    async fn audit(&self) -> Result<Audit, Error> {
        self.right.audit().await
    }

    fn inspect_queue(&self) -> Option<&dyn InspectQueue> {
        let right = self.right_with(Capability::Inspect)?;
        right.inspect_queue().map(|_| self as &dyn InspectQueue)
    }

    fn restore_queue(&self) -> Option<&dyn RestoreQueue> {
        let right = self.right_with(Capability::Restore)?;
        right.restore_queue().map(|_| self as &dyn RestoreQueue)
    }
}
