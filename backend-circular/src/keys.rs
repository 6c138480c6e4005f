//! The keys of a queue, and what they contain.
//!
//! ```text
//!  circle  LIST  Q itself, the ring: ready jobs, jobs in process, and elements of
//!                ended jobs until they are dropped; claims begin at the tail (right)
//!  marks   ZSET  token of a lease -> its end (ms), or the state of the lease:
//!                  0  it expired: the job may be taken over; the attempt counts
//!                 -1  its worker was released: as 0, but the attempt does not count
//!                 -2  as -1, and the job's unique key must still be released
//!                 -3  the job ended or moved: the element must be dropped
//!  marker  STRING  which backend the queue is of: relq-redis's `marker.rs`
//! ```
//!
//! Each mark belongs to one element in process, and each element in process has one
//! mark. So the counts are known without reading the ring: of the `LLEN circle`
//! elements, those with a mark above 0 are leased, those with -3 are not jobs any more,
//! and all others are ready.
//!
//! All other keys belong to the bookkeeping ([`relq_redis::bookkeeping`]). A key exists
//! only while it has elements. A ready job is one list element and nothing else.

use relq_core::QueueName;
use relq_redis::{KeyPrefix, bookkeeping::BookkeepingKeys};

/// The names of all keys of one queue.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) bookkeeping: BookkeepingKeys,
    pub(crate) circle: String,
    pub(crate) marks: String,
}

impl Keys {
    pub(crate) fn new(queue: QueueName) -> Self {
        let prefix = KeyPrefix::new(queue);
        Self {
            bookkeeping: BookkeepingKeys::new(&prefix),
            circle: prefix.producer(),
            marks: prefix.part("marks"),
        }
    }

    /// Returns the pattern's keys in the order in which `pattern.lua` binds them.
    pub(crate) fn of_pattern(&self) -> Vec<String> {
        [&self.circle, &self.marks].map(String::clone).into()
    }
}
