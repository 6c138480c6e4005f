//! The batch calls of a broken queue. A call without a flaw goes to the correct queue.

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;
use relq_core::{
    Error, NewJob, PushToken, ReliableQueue as _, Settlement,
    batch::{Added, BatchId, BatchQueue, BatchStatus, Change, Created, NewBatch},
    outcome::Settled,
};

use crate::broken::{Broken, Flaw};

impl Broken {
    /// Settles jobs in one step. If that completes the suite's batch, pushes the
    /// completion job in a second step.
    pub(crate) async fn complete_in_two_steps(
        &self,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let before = self.has_completed().await?;
        let settled = self.queue.settle(done).await?;
        if !before && self.has_completed().await? {
            self.queue.push(&[NewJob::new("complete 1")], None).await?;
        }
        Ok(settled)
    }

    async fn has_completed(&self) -> Result<bool, Error> {
        let known = self.queue.batch(&BatchId::new("batch-1").unwrap()).await?;
        Ok(known.is_some_and(|it| it.state.is_completed()))
    }
}

#[async_trait]
impl BatchQueue for Broken {
    async fn create(&self, batch: &NewBatch) -> Result<Created, Error> {
        let mut batch = batch.clone();
        if self.flaw == Flaw::CompletesInTwoSteps {
            batch.on_complete = None;
        }
        self.queue.create(&batch).await
    }

    async fn add(
        &self,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error> {
        match self.flaw {
            // Without the token, a repeated call adds the same pieces again.
            Flaw::AddsWithoutToken => self.queue.add(batch, pieces, None).await,
            _ => self.queue.add(batch, pieces, token).await,
        }
    }

    async fn seal(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        self.queue.seal(batch).await
    }

    async fn batch(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        self.queue.batch(batch).await
    }

    async fn list_batches(
        &self,
        after: Option<&BatchId>,
        limit: NonZeroU32,
    ) -> Result<Vec<BatchStatus>, Error> {
        self.queue.list_batches(after, limit).await
    }

    async fn cancel_batch(
        &self,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        self.queue.cancel_batch(batch).await
    }

    async fn alter(
        &self,
        batch: &BatchId,
        change: &Change,
    ) -> Result<Option<BatchStatus>, Error> {
        self.queue.alter(batch, change).await
    }

    async fn wait_batch(
        &self,
        batch: &BatchId,
        timeout: Duration,
    ) -> Result<Option<BatchStatus>, Error> {
        self.queue.wait_batch(batch, timeout).await
    }
}
