//! Batches: a batch is a request of many pieces (jobs). It has a priority, a limit on
//! how many pieces run at once, and one completion (B1 to B10).

mod change;
mod checks;
mod id;
mod new;
mod status;

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;

use crate::{Error, NewJob, PushToken, ReliableQueue, outcome::Pushed};

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
/// [`Delivery::batch`](crate::Delivery::batch) set, and the calls for settling,
/// extending, releasing and recovering treat it like any job. This trait holds only the
/// calls that are specific to batches. [`ReliableQueue::batch_queue`] returns it for a
/// queue of any type.
///
/// ```
/// use std::time::Duration;
/// use relq_core::batch::{Added, BatchId, BatchQueue, NewBatch};
/// use relq_core::{Error, NewJob};
///
/// /// Adds all pieces of a batch, and waits for up to a minute until all have ended.
/// async fn run(queue: &dyn BatchQueue, id: &BatchId) -> Result<(), Error> {
///     queue.create(&NewBatch::new(id.clone())).await?;
///     let pieces = ["north", "south"].map(NewJob::new);
///     match queue.add(id, &pieces, None).await? {
///         Added::Stored(pieces) => println!("{} pieces", pieces.len()),
///         Added::Closed(state) => println!("{id} is {}", state.as_str()),
///         Added::Unknown => println!("{id} was removed"),
///     }
///     queue.seal(id).await?; // there will be no more pieces
///     let status = queue.wait_batch(id, Duration::from_secs(60)).await?;
///     if let Some(outcome) = status.and_then(|status| status.outcome()) {
///         println!("{id}: {outcome:?}");
///     }
///     Ok(())
/// }
/// ```
#[async_trait]
pub trait BatchQueue: ReliableQueue {
    /// Creates an open batch without pieces. The caller chooses the id before the call,
    /// so that it can repeat a call whose reply was lost. The second call returns
    /// [`Created::Exists`] and changes nothing.
    ///
    /// # Errors
    /// [`Error::Invalid`] for metadata above [`NewBatch::MAX_METADATA`], for a retention
    /// under [`NewBatch::MIN_RETENTION`] or above
    /// [`MAX_DURATION`](crate::limits::MAX_DURATION), for a completion job that breaks a
    /// limit or has an id or a unique key of its own, and for a completion queue that
    /// the store cannot use; [`Error::Unsupported`] for an option of that job that is
    /// not supported. In both cases nothing was sent.
    async fn create(&self, batch: &NewBatch) -> Result<Created, Error>;

    /// Adds all of `pieces` to an open batch, or none (B1).
    ///
    /// With a `token` the call can be repeated within five minutes of the first: it
    /// then stores nothing and returns the first result, even when the batch was sealed
    /// or removed in between (R4). A client-made id that the batch knows returns
    /// `Duplicate` and adds no piece.
    ///
    /// # Errors
    /// The errors of [`ReliableQueue::push`], and [`Error::Invalid`] for a piece with a
    /// delay, an expiry, a unique key or a priority of its own. A piece cannot have
    /// these options: the priority of the batch applies to all of its pieces, and the
    /// batch ends only when all of its pieces have ended.
    async fn add(
        &self,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error>;

    /// Declares that there will be no more pieces, so that the batch can complete (B1).
    /// A batch whose pieces have all ended completes in this step. Sealing a sealed or
    /// completed batch changes nothing. Returns `None` when there is no such batch.
    async fn seal(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error>;

    /// The status of a batch; `None` when there is no such batch (B6).
    async fn batch(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error>;

    /// Lists up to `limit` batches of the queue, in the order of their ids. The list
    /// begins after the id `after`. A list shorter than `limit` is the last page.
    async fn list_batches(
        &self,
        after: Option<&BatchId>,
        limit: NonZeroU32,
    ) -> Result<Vec<BatchStatus>, Error>;

    /// Cancels a batch: drops its pieces that are not leased, and notifies the workers
    /// that hold the other pieces (B7). Cancelling a cancelled or completed batch
    /// changes nothing. Returns `None` when there is no such batch.
    async fn cancel_batch(&self, batch: &BatchId)
    -> Result<Option<BatchStatus>, Error>;

    /// Changes the priority or the limit of a batch that has not completed. Returns
    /// `None` when there is no such batch.
    async fn alter(
        &self,
        batch: &BatchId,
        change: &Change,
    ) -> Result<Option<BatchStatus>, Error>;

    /// Waits up to `timeout` until the batch has completed, and returns its status.
    /// After the timeout it returns the status of the batch that is still running.
    /// Returns `None` at once when there is no such batch. If the store does not reply, the
    /// call ends after `timeout`, by the time limits of the connection.
    ///
    /// The call reads the durable record, so it works before and after the completion
    /// (B5).
    ///
    /// # Errors
    /// [`Error::Invalid`] for a timeout above [`MAX_DURATION`](crate::limits::MAX_DURATION).
    async fn wait_batch(
        &self,
        batch: &BatchId,
        timeout: Duration,
    ) -> Result<Option<BatchStatus>, Error>;
}

/// The result of creating a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Created {
    /// The batch was created and is in the store.
    Stored,
    /// A batch of this id exists already, created by any client. It was not changed.
    Exists,
}

/// The result of adding pieces to a batch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Added {
    /// The pieces are in the store; one result for each, in order.
    Stored(Vec<Pushed>),
    /// No piece was stored: the batch is no longer open.
    Closed(BatchState),
    /// No piece was stored: there is no such batch.
    Unknown,
}
