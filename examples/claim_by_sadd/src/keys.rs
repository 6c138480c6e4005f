//! The keys of a queue, and what they contain.
//!
//! ```text
//!  ready       LIST  Q itself: marked ids and bare payloads, oldest on the right
//!  bodies      HASH  id -> entry, of ready and leased jobs
//!  processing  HASH  id -> lease, of leased jobs
//!  leased      ZSET  lease -> end (ms)
//! ```
//!
//! All other keys belong to the bookkeeping ([`relq_redis::bookkeeping`]).

use relq_core::QueueName;
use relq_redis::{KeyPrefix, bookkeeping::BookkeepingKeys, entry::MARK};

/// The names of all Redis keys of one queue.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) bookkeeping: BookkeepingKeys,
    pub(crate) ready: String,
    pub(crate) bodies: String,
    pub(crate) processing: String,
    pub(crate) leased: String,
}

impl Keys {
    pub(crate) fn new(queue: QueueName) -> Self {
        let prefix = KeyPrefix::new(queue);
        Self {
            bookkeeping: BookkeepingKeys::new(&prefix),
            ready: prefix.producer(),
            bodies: prefix.part("bodies"),
            processing: prefix.part("processing"),
            leased: prefix.part("leased"),
        }
    }

    /// Returns the keys that `pattern.lua` uses, in the order in which it binds them.
    pub(crate) fn of_pattern(&self) -> Vec<String> {
        [&self.ready, &self.bodies, &self.processing, &self.leased]
            .map(String::clone)
            .into()
    }
}

/// Returns the job id in an element of the list. Returns `None` for a bare payload.
pub(crate) fn id_in(element: &[u8]) -> Option<&[u8]> {
    element.strip_prefix(&MARK)
}
