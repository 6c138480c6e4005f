//! The batch calls of a queue with overrides.

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;
use relq_core::{
    Error, NewJob, PushToken,
    batch::{Added, BatchId, BatchQueue, BatchStatus, Change, Created, NewBatch},
};

use super::{OverriddenQueue, Right};

impl Right {
    /// Returns the batch calls of the queue.
    ///
    /// # Panics
    /// When the queue has no batches. Then the queue with overrides has none either.
    pub fn batches(&self) -> &dyn BatchQueue {
        self.queue.batch_queue().expect("the healthy queue has batches")
    }
}

#[async_trait]
impl BatchQueue for OverriddenQueue {
    async fn create(&self, batch: &NewBatch) -> Result<Created, Error> {
        self.overrides.create(&self.right, batch).await
    }

    async fn add(
        &self,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error> {
        self.overrides.add(&self.right, batch, pieces, token).await
    }

    async fn seal(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        self.overrides.seal(&self.right, batch).await
    }

    async fn batch(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        self.overrides.batch(&self.right, batch).await
    }

    async fn list_batches(
        &self,
        after: Option<&BatchId>,
        limit: NonZeroU32,
    ) -> Result<Vec<BatchStatus>, Error> {
        self.right.batches().list_batches(after, limit).await
    }

    async fn cancel_batch(
        &self,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        self.overrides.cancel_batch(&self.right, batch).await
    }

    async fn alter(
        &self,
        batch: &BatchId,
        change: &Change,
    ) -> Result<Option<BatchStatus>, Error> {
        self.right.batches().alter(batch, change).await
    }

    async fn wait_batch(
        &self,
        batch: &BatchId,
        timeout: Duration,
    ) -> Result<Option<BatchStatus>, Error> {
        self.overrides.wait_batch(&self.right, batch, timeout).await
    }
}
