//! Batches: a request of many pieces, with a priority, a limit on how many of them run
//! at once, and one completion (B1 to B10).

mod change;
mod checks;
mod id;
mod new;
mod status;

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;

use crate::{Error, NewJob, PushToken, Pushed, ReliableQueue};

pub use change::Change;
pub use id::{BatchId, BatchPriority};
pub use new::{NewBatch, OnComplete};
pub use status::{BatchOutcome, BatchState, BatchStatus};

/// A queue whose jobs may be pieces of batches.
///
/// ```text
///           add            seal             the last piece ended
///  create ------> Open -----------> Sealed ---------------------> Completed
///                  |                  |                             ^
///                  +--- cancel -------+-----> Cancelling -----------+
/// ```
///
/// A piece is a job: [`claim`](ReliableQueue::claim) gives it out with
/// [`Delivery::batch`](crate::Delivery::batch) set, and settle, turn, extend, leave and
/// recover do with it what they do with any job. Only what is special to batches is
/// here. [`ReliableQueue::batch_queue`] leads here from a queue of any type.
#[async_trait]
pub trait BatchQueue: ReliableQueue {
    /// Makes an open batch without pieces. The id is known before the call is sent, so
    /// that a call whose answer was lost can be made again: it then answers
    /// [`Created::Exists`] and changes nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] for too much metadata, for a retention that is too short or
    /// too long, and for a completion job with an id or a unique key of its own or for
    /// a queue that the store cannot have; [`Error::Unsupported`] for an option of that
    /// job that is not supported. Nothing was sent then.
    async fn create(&self, batch: &NewBatch) -> Result<Created, Error>;

    /// Adds all of `pieces` to an open batch, or none (B1).
    ///
    /// With a `token` the call can be repeated within five minutes of the first: it
    /// then stores nothing and gives the first answer, also when the batch was sealed
    /// or removed meanwhile (R4). A client-made id that the batch knows is answered
    /// `Duplicate` and adds no piece.
    ///
    /// # Errors
    /// Those of [`ReliableQueue::push`], and [`Error::Invalid`] for a piece with a
    /// delay, an expiry, a unique key or a priority of its own: a batch is served as
    /// its own priority says, and ends only when all of its pieces have.
    async fn add(
        &self,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error>;

    /// Says that there will be no more pieces, so that the batch can complete (B1). A
    /// batch whose pieces have all ended completes in this step. Sealing a sealed or
    /// completed batch changes nothing. `None` when there is no such batch.
    async fn seal(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error>;

    /// What is known of a batch; `None` when there is no such batch (B6).
    async fn batch(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error>;

    /// Up to `limit` batches of the queue, in the order of their ids, that come after
    /// `after`. An answer of fewer is the last page.
    async fn list_batches(
        &self,
        after: Option<&BatchId>,
        limit: NonZeroU32,
    ) -> Result<Vec<BatchStatus>, Error>;

    /// Drops the pieces that are not started and tells the workers that hold the others
    /// (B7). Cancelling a cancelled or completed batch changes nothing. `None` when
    /// there is no such batch.
    async fn cancel_batch(&self, batch: &BatchId)
    -> Result<Option<BatchStatus>, Error>;

    /// Changes the priority or the limit of a batch that has not completed. `None` when
    /// there is no such batch.
    async fn alter(
        &self,
        batch: &BatchId,
        change: &Change,
    ) -> Result<Option<BatchStatus>, Error>;

    /// Waits up to `timeout` until the batch has completed, and answers what is known
    /// of it then: of a batch that is still running after that time, too. `None` at once
    /// when there is no such batch.
    ///
    /// It reads the durable record, so that it does not matter whether it was called
    /// before the completion or after it (B5).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a timeout above [`MAX_DURATION`](crate::MAX_DURATION).
    async fn wait_batch(
        &self,
        batch: &BatchId,
        timeout: Duration,
    ) -> Result<Option<BatchStatus>, Error>;
}

/// What became of a batch that was to be made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// It is in the store.
    Stored,
    /// A batch of this id exists, of whoever made it; it stays as it is.
    Exists,
}

/// What became of pieces that were to be added.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// They are in the store; an answer for each, in order.
    Stored(Vec<Pushed>),
    /// None was stored: the batch is no longer open.
    Closed(BatchState),
    /// None was stored: there is no such batch.
    Unknown,
}
