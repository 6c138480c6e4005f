//! The keys of a queue, and what is in them.
//!
//! ```text
//!  ready      LIST    Q itself: jobs of normal priority, oldest on the right
//!  handed     LIST    the few of them that a doorbell has moved; older
//!  ranked     ZSET    id -> rank: ready jobs of all other priorities
//!  leased     ZSET    lease -> end (ms): jobs in the hands of workers
//!  held       HASH    lease -> entry, of leased jobs
//!  marker     STRING  which backend the queue is of: queue-redis's `marker.rs`
//! ```
//!
//! All else is the shelf's ([`queue_redis::shelf`]); ranked jobs have their entries in
//! its `jobs`. A key is there only while something is in it. A ready job of normal
//! priority costs one list element and nothing else.

use queue_core::QueueName;
use queue_redis::{KeyPrefix, shelf::ShelfKeys};

/// The names of all keys of one queue.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) queue: QueueName,
    pub(crate) shelf: ShelfKeys,
    pub(crate) ready: String,
    pub(crate) handed: String,
    pub(crate) ranked: String,
    pub(crate) leased: String,
    pub(crate) held: String,
}

impl Keys {
    pub(crate) fn new(queue: QueueName) -> Self {
        let prefix = KeyPrefix::new(queue.clone());
        Self {
            queue,
            shelf: ShelfKeys::new(&prefix),
            ready: prefix.producer(),
            handed: prefix.part("handed"),
            ranked: prefix.part("ranked"),
            leased: prefix.part("leased"),
            held: prefix.part("held"),
        }
    }

    /// Those that `pattern.lua` binds, in its order.
    pub(crate) fn of_pattern(&self) -> Vec<String> {
        [&self.ready, &self.ranked, &self.leased, &self.held].map(String::clone).into()
    }
}
