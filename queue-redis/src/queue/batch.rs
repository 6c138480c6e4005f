//! The calls on batches of a queue whose pattern has batches.

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;
use relq_core::{
    Error, NewJob, PushToken,
    batch::{Added, BatchId, BatchQueue, BatchStatus, Change, Created, NewBatch},
};

use super::RedisQueue;
use crate::pattern::Pattern;

/// A pattern whose jobs may be pieces of batches. The queue implements [`BatchQueue`]
/// by the methods of this trait, which have the same names. [`Pattern::batch_queue`]
/// makes them available.
#[async_trait]
#[expect(missing_docs, reason = "`BatchQueue` documents each method of the same name")]
pub trait BatchPattern: Pattern {
    async fn create(&self, batch: &NewBatch) -> Result<Created, Error>;

    async fn add(
        &self,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error>;

    async fn seal(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error>;

    async fn batch(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error>;

    async fn list_batches(
        &self,
        after: Option<&BatchId>,
        limit: NonZeroU32,
    ) -> Result<Vec<BatchStatus>, Error>;

    async fn cancel_batch(&self, batch: &BatchId)
    -> Result<Option<BatchStatus>, Error>;

    async fn alter(
        &self,
        batch: &BatchId,
        change: &Change,
    ) -> Result<Option<BatchStatus>, Error>;

    async fn wait_batch(
        &self,
        batch: &BatchId,
        timeout: Duration,
    ) -> Result<Option<BatchStatus>, Error>;
}

#[async_trait]
impl<P: BatchPattern> BatchQueue for RedisQueue<P> {
    async fn create(&self, batch: &NewBatch) -> Result<Created, Error> {
        self.pattern.create(batch).await
    }

    async fn add(
        &self,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error> {
        self.pattern.add(batch, pieces, token).await
    }

    async fn seal(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        self.pattern.seal(batch).await
    }

    async fn batch(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        self.pattern.batch(batch).await
    }

    async fn list_batches(
        &self,
        after: Option<&BatchId>,
        limit: NonZeroU32,
    ) -> Result<Vec<BatchStatus>, Error> {
        self.pattern.list_batches(after, limit).await
    }

    async fn cancel_batch(
        &self,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        self.pattern.cancel_batch(batch).await
    }

    async fn alter(
        &self,
        batch: &BatchId,
        change: &Change,
    ) -> Result<Option<BatchStatus>, Error> {
        self.pattern.alter(batch, change).await
    }

    async fn wait_batch(
        &self,
        batch: &BatchId,
        timeout: Duration,
    ) -> Result<Option<BatchStatus>, Error> {
        self.pattern.wait_batch(batch, timeout).await
    }
}
