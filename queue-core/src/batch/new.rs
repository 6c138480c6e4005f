//! The options of a batch that a caller creates.

use std::{num::NonZeroU32, time::Duration};

use bytes::Bytes;

use super::{BatchId, BatchPriority};
use crate::{NewJob, QueueName};

/// The options of a batch that a caller creates.
///
/// ```
/// use std::num::NonZeroU32;
/// use relq_core::NewJob;
/// use relq_core::batch::{BatchId, BatchPriority, NewBatch, OnComplete};
///
/// let batch = NewBatch::new(BatchId::new("nightly")?)
///     .priority(BatchPriority::HIGHEST)
///     .limit(NonZeroU32::new(4))
///     .on_complete(OnComplete::new(NewJob::new("join nightly")));
/// # Ok::<(), relq_core::error::InvalidName>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewBatch {
    /// The batch's identity.
    pub id: BatchId,
    /// The priority of the batch's pieces (B4).
    pub priority: BatchPriority,
    /// How many of the batch's pieces may be leased at once (B3); `None` sets no limit.
    pub limit: Option<NonZeroU32>,
    /// Bytes that the caller chooses, up to [`Self::MAX_METADATA`] bytes. relq does not
    /// read them. The status of the batch contains them.
    pub metadata: Bytes,
    /// The job that the batch's completion pushes (B5).
    pub on_complete: Option<OnComplete>,
    /// How long the batch can be read after its completion (B6); at least a second.
    pub retention: Duration,
}

impl NewBatch {
    /// The largest size of a batch's metadata, in bytes.
    pub const MAX_METADATA: usize = 16 * 1024;
    /// The default retention: how long a batch can be read after its completion.
    pub const DEFAULT_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
    /// The shortest retention. Because of it, a new batch with the id of an earlier
    /// batch is created at least a second after that batch, so the completion jobs of
    /// the two batches have different ids.
    pub const MIN_RETENTION: Duration = Duration::from_secs(1);

    /// A batch with the given id, and with every option at its default.
    pub fn new(id: BatchId) -> Self {
        Self {
            id,
            priority: BatchPriority::NORMAL,
            limit: None,
            metadata: Bytes::new(),
            on_complete: None,
            retention: Self::DEFAULT_RETENTION,
        }
    }

    /// Sets the priority of the batch's pieces.
    #[must_use]
    pub fn priority(mut self, priority: BatchPriority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets how many of the batch's pieces may be leased at once; `None` sets no limit.
    #[must_use]
    pub fn limit(mut self, limit: Option<NonZeroU32>) -> Self {
        self.limit = limit;
        self
    }

    /// Sets the metadata of the batch: any bytes, up to [`Self::MAX_METADATA`] bytes.
    #[must_use]
    pub fn metadata(mut self, metadata: impl Into<Bytes>) -> Self {
        self.metadata = metadata.into();
        self
    }

    /// Sets the job that the batch's completion pushes.
    #[must_use]
    pub fn on_complete(mut self, on_complete: OnComplete) -> Self {
        self.on_complete = Some(on_complete);
        self
    }

    /// Sets how long the batch can be read after its completion.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }
}

/// The job that the completion of a batch pushes, whatever the outcome (B5).
///
/// Its id is [`BatchId::completion_job`], or in another queue
/// [`BatchId::completion_job_elsewhere`]. A job with an id or a unique key of its own
/// is refused: it could be a duplicate of another job, and then the completion would
/// not be reported.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnComplete {
    /// The queue that receives the job; `None` for the batch's own queue. Another queue
    /// must be on the same store and use the same backend.
    pub queue: Option<QueueName>,
    /// The job to push when the batch completes.
    pub job: NewJob,
}

impl OnComplete {
    /// Pushes `job` to the batch's own queue when the batch completes.
    pub fn new(job: NewJob) -> Self {
        Self { queue: None, job }
    }

    /// Pushes the completion job to another queue of the same store.
    #[must_use]
    pub fn queue(mut self, queue: QueueName) -> Self {
        self.queue = Some(queue);
        self
    }
}
