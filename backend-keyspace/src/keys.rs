//! The keys of a queue, and what is in them.
//!
//! ```text
//!  item_ID           STRING  a ready job: an entry, or a bare payload of any client's
//!  processing_ID_…   STRING  a leased job: its entry; `lease.rs` tells the rest
//!  leased            ZSET    processing key -> lease end (ms)
//!  marker            STRING  which backend the queue is of: relq-redis's `marker.rs`
//!  relq:database     STRING  the name of the queue whose database it is
//! ```
//!
//! All else is the bookkeeping's ([`relq_redis::bookkeeping`]). What waits for its time or for an
//! operator is a field of the bookkeeping's hash `jobs`, so that RANDOMKEY does not draw it.
//! A ready job is one key and nothing else.
//!
//! Beside the keys of jobs there are fifteen at most, all known by name. So the number
//! of ready jobs is the size of the database without them and without the leases: no
//! counter is kept, which a `SET` of some other client would not keep true.

use bytes::Bytes;
use relq_core::QueueName;
use relq_redis::{KeyPrefix, bookkeeping::BookkeepingKeys};

/// What the key of a ready job begins with; the id follows.
pub(crate) const ITEM: &str = "item_";

/// What the key of a leased job begins with.
pub(crate) const PROCESSING: &str = "processing_";

/// Names the queue whose database it is: the same key for all queues, so that a second
/// one is refused.
pub(crate) const DATABASE: &str = "relq:database";

/// The names of all keys of one queue but those of jobs.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) bookkeeping: BookkeepingKeys,
    pub(crate) leased: String,
    pub(crate) marker: String,
    pub(crate) database: String,
}

impl Keys {
    pub(crate) fn new(queue: QueueName) -> Self {
        let prefix = KeyPrefix::new(queue);
        Self {
            bookkeeping: BookkeepingKeys::new(&prefix),
            leased: prefix.part("leased"),
            marker: prefix.part("marker"),
            database: DATABASE.to_owned(),
        }
    }

    /// Those that `pattern.lua` binds, in its order.
    pub(crate) fn of_pattern(&self) -> Vec<String> {
        [&self.leased, &self.database, &self.marker].map(String::clone).into()
    }
}

/// The key of the ready job of that id.
pub(crate) fn item(id: &str) -> String {
    format!("{ITEM}{id}")
}

/// The id in the key of a ready job, whatever it is.
pub(crate) fn id_of_item(key: &Bytes) -> Bytes {
    key.slice(ITEM.len().min(key.len())..)
}
