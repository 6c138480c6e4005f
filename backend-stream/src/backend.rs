//! The type that implements this backend, with the connection and keys of one queue.

use crate::{batch::FailedQueues, scripts::Store};

/// The pattern of this backend, which stores the jobs of one queue in Redis Streams.
#[derive(Debug)]
pub struct Streams {
    pub(crate) store: Store,
    pub(crate) failed_queues: FailedQueues,
}
