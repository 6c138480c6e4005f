//! The keys of a queue, and what they contain.
//!
//! ```text
//!  ready       LIST  Q itself: entries and bare payloads, oldest on the right
//!  held        HASH  lease -> entry, of leased jobs
//!  ends        HASH  lease -> end (ms)
//!  minutes     ZSET  minute since 1970 -> itself: the minutes that have a set
//!  minutes:M   SET   the leases to be looked at in minute M, and some that have ended
//! ```
//!
//! Each lease is in the set of a minute that is not later than its end. All other keys
//! belong to the bookkeeping ([`relq_redis::bookkeeping`]).

use relq_core::QueueName;
use relq_redis::{KeyPrefix, bookkeeping::BookkeepingKeys};

/// The names of all Redis keys of one queue, except the sets of the minutes.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) bookkeeping: BookkeepingKeys,
    pub(crate) ready: String,
    pub(crate) held: String,
    pub(crate) ends: String,
    pub(crate) minutes: String,
}

impl Keys {
    pub(crate) fn new(queue: QueueName) -> Self {
        let prefix = KeyPrefix::new(queue);
        Self {
            bookkeeping: BookkeepingKeys::new(&prefix),
            ready: prefix.producer(),
            held: prefix.part("held"),
            ends: prefix.part("ends"),
            minutes: prefix.part("minutes"),
        }
    }

    /// Returns the keys that `pattern.lua` uses, in the order in which it binds them.
    pub(crate) fn of_pattern(&self) -> Vec<String> {
        [&self.ready, &self.held, &self.ends, &self.minutes].map(String::clone).into()
    }

    /// Returns the key of the set with the leases that the reaper checks in a given
    /// minute.
    pub(crate) fn set_of(&self, minute: &str) -> String {
        format!("{}:{minute}", self.minutes)
    }
}
