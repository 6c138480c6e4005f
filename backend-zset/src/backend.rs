//! The state of this backend on one queue.

use relq_redis::PushBatcher;

use crate::scripts::Store;

/// How this backend keeps its jobs.
#[derive(Debug)]
pub struct Zset {
    pub(crate) store: Store,
    pub(crate) pushes: PushBatcher,
}
