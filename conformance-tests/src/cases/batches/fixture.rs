//! Helpers and assertions for the cases of batches.

use std::num::NonZeroU32;

use bytes::Bytes;
use relq_core::{
    Delivery, NewJob,
    batch::{
        Added, BatchId, BatchOutcome, BatchQueue, BatchStatus, Created, NewBatch,
        OnComplete,
    },
    outcome::Pushed,
};

use crate::harness::{actor::Actor, checks::numbered};

/// The payload of the completion job of every batch.
pub(super) const COMPLETE: &str = "complete";

pub(super) fn batch(text: &str) -> BatchId {
    BatchId::new(text).expect("cases use valid batch ids")
}

pub(super) fn limit(pieces: u32) -> Option<NonZeroU32> {
    Some(NonZeroU32::new(pieces).expect("a limit is not zero"))
}

/// Describes a new batch. Its completion pushes the job [`COMPLETE`] to the batch's own
/// queue.
pub(super) fn telling(id: &str) -> NewBatch {
    NewBatch::new(batch(id)).on_complete(OnComplete::new(NewJob::new(COMPLETE)))
}

impl Actor {
    /// Returns the queue's batch calls. Panics if the backend has no batches.
    pub(super) fn batches(&self) -> &dyn BatchQueue {
        self.batch_queue().expect("the backend supports batches")
    }

    /// Creates a batch, asserts that it did not exist before, and returns its id.
    pub(in crate::cases) async fn make(&self, new: &NewBatch) -> BatchId {
        let made = self.batches().create(new).await.expect("the call is answered");
        assert_eq!(made, Created::Stored, "B1: the creation of batch {}", new.id);
        new.id.clone()
    }

    /// Adds pieces, and asserts that all of them are stored.
    pub(in crate::cases) async fn fill<J: Into<NewJob>>(
        &self,
        batch: &BatchId,
        pieces: impl IntoIterator<Item = J>,
    ) {
        let pieces: Vec<NewJob> = pieces.into_iter().map(Into::into).collect();
        let added = self.batches().add(batch, &pieces, None).await;
        match added.expect("the call is answered") {
            Added::Stored(pushed) => {
                assert_eq!(pushed.len(), pieces.len(), "B1: the results of the pieces");
                let is_stored = |one: &Pushed| matches!(one, Pushed::Stored(_));
                assert!(pushed.iter().all(is_stored), "B1: not all stored: {pushed:?}");
            }
            other => panic!("not added: {other:?}"),
        }
    }

    /// Seals an existing batch, and returns its status after that.
    pub(in crate::cases) async fn close(&self, batch: &BatchId) -> BatchStatus {
        let sealed = self.batches().seal(batch).await.expect("the call is answered");
        self.adds_up(sealed.expect("the batch is there"))
    }

    /// Cancels an existing batch, and returns its status after that.
    pub(in crate::cases) async fn call_off(&self, batch: &BatchId) -> BatchStatus {
        let cancelled = self.batches().cancel_batch(batch).await;
        let cancelled = cancelled.expect("the call is answered");
        self.adds_up(cancelled.expect("the batch is there"))
    }

    /// Reads the status of a batch, which must exist.
    pub(super) async fn status(&self, batch: &BatchId) -> BatchStatus {
        let known = self.batches().batch(batch).await.expect("the call is answered");
        self.adds_up(known.expect("the batch is there"))
    }

    /// Creates a batch of `count` numbered pieces and seals it.
    pub(super) async fn submit(&self, new: &NewBatch, count: usize) -> BatchId {
        let batch = self.make(new).await;
        self.fill(&batch, pieces(&batch, count)).await;
        self.close(&batch).await;
        batch
    }

    /// B2: asserts that each piece is counted exactly once.
    fn adds_up(&self, status: BatchStatus) -> BatchStatus {
        let sum = status.ended() + status.leased + status.waiting;
        assert_eq!(status.total, sum, "B2: {status:?}");
        status
    }

    /// Asserts that the batch has completed with that outcome, and that its record says
    /// so.
    pub(super) async fn assert_completed(
        &self,
        batch: &BatchId,
        outcome: BatchOutcome,
    ) {
        let status = self.status(batch).await;
        assert_eq!(status.outcome(), Some(outcome), "B5: batch {batch}: {status:?}");
        assert!(status.completed_at.is_some(), "B5: batch {batch}: {status:?}");
        assert_eq!(status.leased + status.waiting, 0, "B5: batch {batch}: {status:?}");
    }

    /// Asserts that the batch has not completed.
    pub(super) async fn assert_running(&self, batch: &BatchId) {
        let status = self.status(batch).await;
        assert_eq!(status.outcome(), None, "B1: batch {batch}: {status:?}");
        assert_eq!(status.completed_at, None, "B1: batch {batch}: {status:?}");
    }
}

/// Returns `count` different payloads for pieces. Each names its batch and has its own
/// number.
pub(super) fn pieces(batch: &BatchId, count: usize) -> Vec<Bytes> {
    let numbered = numbered(count).into_iter();
    numbered.map(|one| Bytes::from(format!("{batch} {}", one.escape_ascii()))).collect()
}

/// Counts the deliveries that are pieces of the batch `id`.
pub(super) fn of(taken: &[Delivery], id: &BatchId) -> usize {
    taken.iter().filter(|one| one.batch.as_ref() == Some(id)).count()
}

/// Counts the deliveries that are completion jobs.
pub(super) fn completed(taken: &[Delivery]) -> usize {
    taken.iter().filter(|one| one.payload == COMPLETE).count()
}
