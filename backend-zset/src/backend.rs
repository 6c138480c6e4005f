//! The data that this backend keeps for one open queue.

use relq_redis::PushBatcher;

use crate::scripts::Store;

/// The zset pattern on one queue, with the queue's keys and connection.
#[derive(Debug)]
pub struct Zset {
    pub(crate) store: Store,
    pub(crate) pushes: PushBatcher,
}
