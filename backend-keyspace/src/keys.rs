//! The keys of a queue, and what each one holds.
//!
//! ```text
//!  item_ID           STRING  a ready job: an entry, or a bare payload of any client
//!  processing_ID_…   STRING  a leased job: its entry; see `lease.rs` for the name
//!  leased            ZSET    processing key -> lease end (ms)
//!  marker            STRING  the queue's backend: see relq-redis's `marker.rs`
//!  relq:database     STRING  the name of the queue that owns the database
//! ```
//!
//! All other keys belong to the bookkeeping ([`relq_redis::bookkeeping`]). Scheduled
//! and dead jobs are fields of the bookkeeping's hash `jobs`, so RANDOMKEY does not
//! draw them. A ready job is one key and nothing else.
//!
//! Besides the keys of jobs, a queue has at most fifteen keys, and their names are
//! known. So the number of ready jobs is the size of the database minus these keys and
//! minus the leases. The queue keeps no counter, because a `SET` by another client
//! would not update it.

use bytes::Bytes;
use relq_core::QueueName;
use relq_redis::{KeyPrefix, bookkeeping::BookkeepingKeys};

/// The prefix of a ready job's key. The job's id follows.
pub(crate) const ITEM: &str = "item_";

/// The prefix of a leased job's key.
pub(crate) const PROCESSING: &str = "processing_";

/// The key that holds the name of the queue that owns the database. All queues use the
/// same key, so a second queue is refused.
pub(crate) const DATABASE: &str = "relq:database";

/// The names of all keys of one queue, except those of jobs.
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

    /// Returns the pattern's keys in the order in which `pattern.lua` binds them.
    pub(crate) fn of_pattern(&self) -> Vec<String> {
        [&self.leased, &self.database, &self.marker].map(String::clone).into()
    }
}

/// Returns the key that holds the job with this id while the job is ready.
pub(crate) fn item(id: &str) -> String {
    format!("{ITEM}{id}")
}

/// Returns the job's id from the key of a ready job. The id may be invalid, because any
/// client can set such a key.
pub(crate) fn id_of_item(key: &Bytes) -> Bytes {
    key.slice(ITEM.len().min(key.len())..)
}
