//! A batch to be made.

use std::{num::NonZeroU32, time::Duration};

use bytes::Bytes;

use super::{BatchId, BatchPriority};
use crate::{NewJob, QueueName};

/// A batch to be made.
///
/// ```
/// use std::num::NonZeroU32;
/// use relq_core::{BatchId, BatchPriority, NewBatch, NewJob, OnComplete};
///
/// let batch = NewBatch::new(BatchId::new("nightly")?)
///     .priority(BatchPriority::HIGHEST)
///     .limit(NonZeroU32::new(4))
///     .on_complete(OnComplete::new(NewJob::new("join nightly")));
/// # Ok::<(), relq_core::InvalidName>(())
/// ```
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct NewBatch {
    /// Its identity.
    pub id: BatchId,
    /// How soon its pieces are wanted (B4).
    pub priority: BatchPriority,
    /// How many of its pieces are leased at once (B3); `None` sets no limit.
    pub limit: Option<NonZeroU32>,
    /// Any bytes of the caller's, up to [`Self::MAX_METADATA`]; given back with the
    /// status.
    pub metadata: Bytes,
    /// The job that its completion pushes (B5).
    pub on_complete: Option<OnComplete>,
    /// How long after its completion it can be read (B6); at least a second.
    pub retention: Duration,
}

impl NewBatch {
    /// The most metadata, in bytes.
    pub const MAX_METADATA: usize = 16 * 1024;
    /// How long a batch that does not say otherwise can be read after its completion.
    pub const DEFAULT_RETENTION: Duration = Duration::from_secs(24 * 60 * 60);
    /// The shortest retention: a name that is used again has another time of creation.
    pub const MIN_RETENTION: Duration = Duration::from_secs(1);

    /// A batch of that name, with every option at its default.
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

    /// Sets how soon its pieces are wanted.
    #[must_use]
    pub fn priority(mut self, priority: BatchPriority) -> Self {
        self.priority = priority;
        self
    }

    /// Sets how many of its pieces are leased at once; `None` sets no limit.
    #[must_use]
    pub fn limit(mut self, limit: Option<NonZeroU32>) -> Self {
        self.limit = limit;
        self
    }

    /// Gives it metadata.
    #[must_use]
    pub fn metadata(mut self, metadata: impl Into<Bytes>) -> Self {
        self.metadata = metadata.into();
        self
    }

    /// Has its completion push a job.
    #[must_use]
    pub fn on_complete(mut self, on_complete: OnComplete) -> Self {
        self.on_complete = Some(on_complete);
        self
    }

    /// Sets how long after its completion it can be read.
    #[must_use]
    pub fn retention(mut self, retention: Duration) -> Self {
        self.retention = retention;
        self
    }
}

/// The job that the completion of a batch pushes, whatever the outcome (B5).
///
/// Its id is [`BatchId::completion_job`]. An id or a unique key of its own is refused:
/// either could make it a duplicate, and then the completion would not be told.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct OnComplete {
    /// Where it is pushed; `None` is the batch's own queue. Another queue is one on the
    /// same store and of the same backend.
    pub queue: Option<QueueName>,
    /// The job.
    pub job: NewJob,
}

impl OnComplete {
    /// That job, pushed to the batch's own queue.
    pub fn new(job: NewJob) -> Self {
        Self { queue: None, job }
    }

    /// Pushes it to another queue of the same store.
    #[must_use]
    pub fn queue(mut self, queue: QueueName) -> Self {
        self.queue = Some(queue);
        self
    }
}
