//! The type that implements this backend, with the connection and keys of one queue.

use std::sync::Arc;

use crate::{
    batch::{FailedQueues, Forwarders},
    scripts::Store,
};

/// The pattern of this backend, which stores the jobs of one queue in Redis Streams.
#[derive(Debug, Clone)]
pub struct Streams {
    pub(crate) store: Store,
    pub(crate) failed_queues: Arc<FailedQueues>,
    pub(crate) forwarders: Arc<Forwarders>,
}
