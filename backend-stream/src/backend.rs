//! The state of this backend on one queue.

use crate::scripts::Store;

/// How this backend keeps its jobs: in Redis Streams.
#[derive(Debug)]
pub struct Streams {
    pub(crate) store: Store,
}
