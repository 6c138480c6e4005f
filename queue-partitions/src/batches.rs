//! The calls on batches. All pieces of a batch are in one part, to which the id of the
//! batch belongs.
//!
//! The number of parts may have changed since a batch was created. A batch that is not
//! in its part is therefore looked for in the others.

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;
use futures_util::future::BoxFuture;
use relq_core::{
    Error, NewJob, PushToken, ReliableQueue,
    batch::{Added, BatchId, BatchQueue, BatchStatus, Change, Created, NewBatch},
    error::Operation,
};

use crate::{FairTurn, Partitioned, joined};

type Found = Result<Option<BatchStatus>, Error>;

impl<Q: ReliableQueue + ?Sized> Partitioned<Q> {
    fn batches_of(&self, part: usize) -> Result<&dyn BatchQueue, Error> {
        let batches = self.parts[part].batch_queue();
        batches.ok_or_else(|| Error::Unsupported {
            at: self.at(Operation::CreateBatch),
            option: "a batch",
        })
    }

    /// Calls the part to which the batch belongs, and then the others until one has it.
    async fn find<'a>(
        &'a self,
        batch: &'a BatchId,
        call: impl Fn(&'a dyn BatchQueue) -> BoxFuture<'a, Found> + Send + Sync,
    ) -> Found {
        let first = self.part_of.batch(batch);
        let mut left = self.parts.len();
        for part in FairTurn::beginning_at(first, self.parts.len()) {
            let found = call(self.batches_of(part)?).await;
            self.notice(part, &found);
            left -= 1;
            if !matches!(found, Ok(None)) {
                return joined::of_search(found, left);
            }
        }
        Ok(None)
    }
}

#[async_trait]
impl<Q: ReliableQueue + ?Sized> BatchQueue for Partitioned<Q> {
    async fn create(&self, batch: &NewBatch) -> Result<Created, Error> {
        self.capabilities().check_new_batch(batch)?;
        self.begin_write(Operation::CreateBatch).await?;
        let part = self.part_of.batch(&batch.id);
        let created = self.batches_of(part)?.create(batch).await;
        self.notice(part, &created);
        created
    }

    async fn add(
        &self,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error> {
        self.capabilities().check_pieces(pieces, token.is_some())?;
        self.begin_write(Operation::AddPieces).await?;
        let first = self.part_of.batch(batch);
        let mut left = self.parts.len();
        for part in FairTurn::beginning_at(first, self.parts.len()) {
            let added = self.batches_of(part)?.add(batch, pieces, token).await;
            self.notice(part, &added);
            left -= 1;
            if !matches!(added, Ok(Added::Unknown)) {
                return joined::of_search(added, left);
            }
        }
        Ok(Added::Unknown)
    }

    async fn seal(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        self.begin_write(Operation::SealBatch).await?;
        self.find(batch, |part| part.seal(batch)).await
    }

    async fn batch(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        self.find(batch, |part| part.batch(batch)).await
    }

    async fn list_batches(
        &self,
        after: Option<&BatchId>,
        limit: NonZeroU32,
    ) -> Result<Vec<BatchStatus>, Error> {
        let mut all = Vec::new();
        for part in 0..self.parts.len() {
            let listed = self.batches_of(part)?.list_batches(after, limit).await;
            self.notice(part, &listed);
            all.push(listed);
        }
        let mut all: Vec<_> = joined::of_reads(all)?.into_iter().flatten().collect();
        all.sort_by(|one, other| one.id.cmp(&other.id));
        all.truncate(limit.get() as usize);
        Ok(all)
    }

    async fn cancel_batch(
        &self,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        self.begin_write(Operation::CancelBatch).await?;
        self.find(batch, |part| part.cancel_batch(batch)).await
    }

    async fn alter(
        &self,
        batch: &BatchId,
        change: &Change,
    ) -> Result<Option<BatchStatus>, Error> {
        self.begin_write(Operation::AlterBatch).await?;
        self.find(batch, |part| part.alter(batch, change)).await
    }

    async fn wait_batch(
        &self,
        batch: &BatchId,
        timeout: Duration,
    ) -> Result<Option<BatchStatus>, Error> {
        self.find(batch, |part| part.wait_batch(batch, timeout)).await
    }
}
