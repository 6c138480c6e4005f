//! The batches of a twisted queue.

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;
use queue_core::{
    Added, BatchId, BatchQueue, BatchStatus, Change, Created, Error, NewBatch, NewJob,
    PushToken,
};

use super::{Right, Twisted};

impl Right {
    /// The batches of the healthy queue.
    ///
    /// # Panics
    /// When it has none: a twisted queue has batches where the healthy one has.
    pub fn batches(&self) -> &dyn BatchQueue {
        self.queue.batch_queue().expect("the healthy queue has batches")
    }
}

#[async_trait]
impl BatchQueue for Twisted {
    async fn create(&self, batch: &NewBatch) -> Result<Created, Error> {
        self.right.batches().create(batch).await
    }

    async fn add(
        &self,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error> {
        self.twist.add(&self.right, batch, pieces, token).await
    }

    async fn seal(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        self.right.batches().seal(batch).await
    }

    async fn batch(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        self.twist.batch(&self.right, batch).await
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
        self.twist.cancel_batch(&self.right, batch).await
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
        self.twist.wait_batch(&self.right, batch, timeout).await
    }
}
