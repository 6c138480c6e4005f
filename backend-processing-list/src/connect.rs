//! Opens a queue as a trait object, so that the caller does not depend on its type.

use std::sync::Arc;

use relq_core::QueueName;
use relq_redis::Connecting;

use crate::{ProcessingListConfig, ProcessingListQueue};

/// Opens a queue as [`ProcessingListQueue::connect`] does, and returns it as a trait
/// object. The code of the queue is then compiled only in this crate, and not again in
/// each crate that uses it.
///
/// # Errors
/// The errors of [`ProcessingListQueue::connect`].
pub fn connect(config: ProcessingListConfig, queue: QueueName) -> Connecting {
    Box::pin(async move {
        Ok(Arc::new(ProcessingListQueue::connect(config, queue).await?) as _)
    })
}
