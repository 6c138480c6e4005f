//! Batches: pieces in a stream of their own, in the slot of the queue (B1 to B10).
//!
//! ```text
//!  record:ID   the batch's fields, and counts of its ended pieces
//!  pieces:ID   its ready and leased pieces, which are claimed like jobs
//!  live:ID     ids of its pieces that have not ended
//!  claimable   batches with a ready piece and a free slot, by rank
//! ```
//!
//! A piece is counted when it leaves `live:ID`. All these keys are in the queue's slot,
//! so one script can end a piece, free its slot, count it, complete the batch and push
//! the completion job. The slots in use are the entries that the consumer `leased` of
//! the batch's stream holds; no other counter exists that could be lost. Only a
//! completion job for another queue needs a second step: it stays in the outbox until
//! it is pushed, with an id of its own.

mod forwarders;
mod outbox;
pub(crate) mod record;
mod wait;

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;
use relq_core::{
    Error, NewJob, PushToken,
    batch::{Added, BatchId, BatchStatus, Change, Created, NewBatch},
    error::Operation,
};
use relq_redis::{PartialEffect, all_steps, pattern::BatchPattern};

use crate::{Streams, capabilities::CAPABILITIES};

pub(crate) use forwarders::Forwarders;
pub(crate) use outbox::{
    FailedQueues, forward, forward_page, forward_the_rest, is_piece,
};

#[async_trait]
impl BatchPattern for Streams {
    async fn create(&self, batch: &NewBatch) -> Result<Created, Error> {
        CAPABILITIES.check_new_batch(batch)?;
        self.store.create_batch(batch).await
    }

    async fn add(
        &self,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error> {
        CAPABILITIES.check_pieces(pieces, token.is_some())?;
        self.store.add_pieces(batch, pieces, token).await
    }

    async fn seal(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        let status = self.store.seal_batch(batch).await?;
        if status.as_ref().is_some_and(|status| status.state.is_completed()) {
            forward(self, Operation::SealBatch).await;
        }
        Ok(status)
    }

    async fn batch(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        Ok(self.store.read_batch(Operation::ReadBatch, batch).await?.status)
    }

    async fn list_batches(
        &self,
        after: Option<&BatchId>,
        limit: NonZeroU32,
    ) -> Result<Vec<BatchStatus>, Error> {
        let mut found: Vec<BatchStatus> = Vec::new();
        loop {
            let room = limit.get() - u32::try_from(found.len()).unwrap_or(limit.get());
            let page = room.min(self.store.bookkeeping.max_jobs_per_step().get());
            let after = found.last().map(|last| &last.id).or(after);
            let next =
                self.store.list_batches(Operation::ReadBatch, after, page).await?;
            let is_last = next.len() < page as usize || page == room;
            found.extend(next);
            if is_last {
                return Ok(found);
            }
        }
    }

    async fn cancel_batch(
        &self,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        let cancelling = async {
            let mut partial = PartialEffect::default();
            loop {
                let most = self.store.bookkeeping.max_jobs_per_step().get();
                let page = self.store.cancel_batch(batch, most).await;
                let (has_more, status) = partial.then(page)?;
                if !has_more {
                    return Ok(status);
                }
            }
        };
        let status = all_steps(Operation::CancelBatch, cancelling).await?;
        if status.as_ref().is_some_and(|status| status.state.is_completed()) {
            forward(self, Operation::CancelBatch).await;
        }
        Ok(status)
    }

    async fn alter(
        &self,
        batch: &BatchId,
        change: &Change,
    ) -> Result<Option<BatchStatus>, Error> {
        self.store.alter_batch(batch, change).await
    }

    async fn wait_batch(
        &self,
        batch: &BatchId,
        timeout: Duration,
    ) -> Result<Option<BatchStatus>, Error> {
        CAPABILITIES.check_wait(timeout)?;
        wait::until_completed(&self.store, batch, timeout).await
    }
}
