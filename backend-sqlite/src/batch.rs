//! Batches (B1 to B10): pieces are rows of `jobs` that name their batch. A call changes
//! a batch in the same transaction as its pieces.
//!
//! ```text
//! a piece changes its state ---> a trigger updates the batch's counts   one
//!      |                                                                trans-
//!      v                                                                action
//! maintenance drops waiting pieces of a cancelled batch, completes
//! batches, and pushes their completion jobs to any queue of the file
//! ```
//!
//! No outbox is needed, because one transaction can change all queues of a file. So a
//! process that dies leaves nothing half done. Only dropping the pieces of a cancelled
//! batch takes several transactions, and none of those pieces can be claimed meanwhile.

mod calls;
mod completion;
pub(crate) mod maintenance;

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;
use relq_core::{
    Error, NewJob, PushToken, ReliableQueue as _,
    batch::{Added, BatchId, BatchQueue, BatchStatus, Change, Created, NewBatch},
    error::Operation,
};

use crate::claim::Pulse;
use crate::failure::Failure;
use crate::pages::Pages;
use crate::push::Push;
use crate::queue::SqliteQueue;
use calls::{Add, Alter, CancelBatch, Create, List, Read, Seal, Watch};

impl SqliteQueue {
    fn check_completion(&self, batch: &NewBatch) -> Result<(), Failure> {
        let target = batch.on_complete.as_ref().and_then(|it| it.queue.as_ref());
        if target.is_some() && !self.has_other_queues() {
            return Err(Failure::invalid(
                "a store in memory has one queue, so a completion job cannot go to \
                 another",
            ));
        }
        Ok(())
    }

    async fn cancel_pages(
        &self,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Failure> {
        let mut pages = Pages::default();
        loop {
            let call = CancelBatch { batch: batch.clone() };
            let page = pages.then(self.db_thread().call(call).await)?;
            if !page.more {
                return Ok(page.status);
            }
        }
    }

    async fn list_pages(
        &self,
        after: Option<&BatchId>,
        limit: u32,
    ) -> Result<Vec<BatchStatus>, Failure> {
        let mut found: Vec<BatchStatus> = Vec::new();
        loop {
            let room = limit - u32::try_from(found.len()).unwrap_or(limit);
            let limit = room.min(self.environment().max_jobs_per_step().get());
            let after = found.last().map(|last| &last.id).or(after).cloned();
            let page = self.read(List { after, limit }).await?;
            let is_last = page.len() < limit as usize || limit == room;
            found.extend(page);
            if is_last {
                return Ok(found);
            }
        }
    }

    async fn wait_for_completion(
        &self,
        batch: &BatchId,
        timeout: Duration,
    ) -> Result<Option<BatchStatus>, Failure> {
        let clock = self.environment().clock();
        let deadline = clock.elapsed().saturating_add(timeout);
        let mut notifier = self.listen();
        loop {
            notifier.mark_unchanged();
            let seen = self.db_thread().call(Watch { batch: batch.clone() }).await?;
            let left = deadline.saturating_sub(clock.elapsed());
            let runs = seen.status.as_ref().is_some_and(|it| !it.state.is_completed());
            if !runs || left.is_zero() {
                return Ok(seen.status);
            }
            let pulse = Pulse { version: seen.version, due: None };
            self.wait_for_change(notifier.changed(), pulse, left).await?;
        }
    }
}

#[async_trait]
impl BatchQueue for SqliteQueue {
    async fn create(&self, batch: &NewBatch) -> Result<Created, Error> {
        self.capabilities().check_new_batch(batch)?;
        self.check_completion(batch).map_err(|it| it.at(Operation::CreateBatch))?;
        let call = Create { batch: batch.clone() };
        self.db_thread().call(call).await.map_err(|it| it.at(Operation::CreateBatch))
    }

    async fn add(
        &self,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error> {
        self.capabilities().check_pieces(pieces, token.is_some())?;
        let push = Push { jobs: pieces.to_vec(), token: token.cloned() };
        let call = Add { batch: batch.clone(), push };
        self.db_thread().call(call).await.map_err(|it| it.at(Operation::AddPieces))
    }

    async fn seal(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        let call = Seal { batch: batch.clone() };
        self.db_thread().call(call).await.map_err(|it| it.at(Operation::SealBatch))
    }

    async fn batch(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        let call = Read { batch: batch.clone() };
        self.read(call).await.map_err(|it| it.at(Operation::ReadBatch))
    }

    async fn list_batches(
        &self,
        after: Option<&BatchId>,
        limit: NonZeroU32,
    ) -> Result<Vec<BatchStatus>, Error> {
        let listed = self.list_pages(after, limit.get()).await;
        listed.map_err(|it| it.at(Operation::ReadBatch))
    }

    async fn cancel_batch(
        &self,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        self.cancel_pages(batch).await.map_err(|it| it.at(Operation::CancelBatch))
    }

    async fn alter(
        &self,
        batch: &BatchId,
        change: &Change,
    ) -> Result<Option<BatchStatus>, Error> {
        let call = Alter { batch: batch.clone(), change: *change };
        self.db_thread().call(call).await.map_err(|it| it.at(Operation::AlterBatch))
    }

    async fn wait_batch(
        &self,
        batch: &BatchId,
        timeout: Duration,
    ) -> Result<Option<BatchStatus>, Error> {
        self.capabilities().check_wait(timeout)?;
        let waited = self.wait_for_completion(batch, timeout).await;
        waited.map_err(|it| it.at(Operation::WaitBatch))
    }
}
