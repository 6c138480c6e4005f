//! The keys of a queue, and what they contain.
//!
//! ```text
//! ready      LIST    Q itself: jobs of normal priority, oldest on the right
//! handed     LIST    jobs that a notifier has moved here from Q; they are older
//! ranked     ZSET    id -> rank: ready jobs of all other priorities
//! leased     ZSET    lease -> end (ms): jobs that workers hold
//! held       HASH    lease -> entry, of leased jobs
//! marker     STRING  the queue's backend: see relq-redis's `marker.rs`
//! absent             never exists: see [`Keys::absent`]
//! ```
//!
//! All other keys belong to the bookkeeping ([`relq_redis::bookkeeping`]); its key
//! `jobs` has the entries of ranked jobs. A key exists only while it has elements. A
//! ready job of normal priority is one list element and nothing else.

use relq_core::QueueName;
use relq_redis::{KeyPrefix, bookkeeping::BookkeepingKeys};

/// The names of all keys of one queue.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) bookkeeping: BookkeepingKeys,
    pub(crate) ready: String,
    pub(crate) handed: String,
    pub(crate) ranked: String,
    pub(crate) leased: String,
    pub(crate) held: String,
    /// A key that no queue has. A slot of a cluster moves key by key, and meanwhile a node
    /// has a script wait if one of the keys that the script names is missing. It does not
    /// know the keys whose names the script builds itself. Such a script also names this
    /// key, which is always missing, so that it waits in any case.
    pub(crate) absent: String,
}

impl Keys {
    pub(crate) fn new(queue: QueueName) -> Self {
        let prefix = KeyPrefix::new(queue);
        Self {
            bookkeeping: BookkeepingKeys::new(&prefix),
            ready: prefix.producer(),
            handed: prefix.part("handed"),
            ranked: prefix.part("ranked"),
            leased: prefix.part("leased"),
            held: prefix.part("held"),
            absent: prefix.part("absent"),
        }
    }

    /// Returns the pattern's keys in the order in which `pattern.lua` binds them.
    pub(crate) fn of_pattern(&self) -> Vec<String> {
        [&self.ready, &self.ranked, &self.leased, &self.held].map(String::clone).into()
    }
}
