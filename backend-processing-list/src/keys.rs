//! The keys of a queue, and what each one holds.
//!
//! ```text
//!  ready        LIST  Q itself: oldest on the right
//!  handed       LIST  jobs that a waiting claim of the shared mode has moved; they
//!                     are older than those in Q
//!  w:SESSION    LIST  jobs that one worker holds, oldest on the right
//!  processing   LIST  jobs of workers of the shared mode, oldest on the right
//!  leased       ZSET  lease -> end (ms): every lease of the shared mode, and those that
//!                     their worker's last heartbeat did not name
//!  workers      ZSET  session -> end of its heartbeat (ms)
//!  retired      ZSET  session that ended -> until when its list is watched (ms)
//!  marker       STRING  the queue's backend: see relq-redis's `marker.rs`
//! ```
//!
//! All other keys belong to the bookkeeping ([`relq_redis::bookkeeping`]). A key exists
//! only while it holds something. A ready job costs one list element and nothing else,
//! and so does a job that a worker holds.

use relq_core::QueueName;
use relq_redis::{KeyPrefix, bookkeeping::BookkeepingKeys, escape_glob};

use crate::session::{Session, Site};

/// The names of all keys of one queue.
#[derive(Debug, Clone)]
pub(crate) struct Keys {
    pub(crate) queue: QueueName,
    pub(crate) bookkeeping: BookkeepingKeys,
    pub(crate) ready: String,
    pub(crate) handed: String,
    pub(crate) processing: String,
    pub(crate) leased: String,
    pub(crate) workers: String,
    pub(crate) retired: String,
    prefix: KeyPrefix,
}

impl Keys {
    pub(crate) fn new(queue: QueueName) -> Self {
        let prefix = KeyPrefix::new(queue.clone());
        Self {
            queue,
            bookkeeping: BookkeepingKeys::new(&prefix),
            ready: prefix.producer(),
            handed: prefix.part("handed"),
            processing: prefix.part("processing"),
            leased: prefix.part("leased"),
            workers: prefix.part("workers"),
            retired: prefix.part("retired"),
            prefix,
        }
    }

    /// The keys that `pattern.lua` binds, in its order.
    pub(crate) fn of_pattern(&self) -> Vec<String> {
        [&self.ready, &self.leased, &self.workers, &self.retired]
            .map(String::clone)
            .into()
    }

    /// The list that holds the elements of a site.
    pub(crate) fn list(&self, site: &Site) -> String {
        match site {
            Site::Shared => self.processing.clone(),
            Site::Own(session) => self.own_list(session),
        }
    }

    /// A worker's own list.
    pub(crate) fn own_list(&self, session: &Session) -> String {
        self.prefix.part(&format!("w:{session}"))
    }

    /// A pattern that matches every worker's own list, registered or not.
    pub(crate) fn every_own_list(&self) -> String {
        escape_glob(&self.prefix.part("w:")) + "*"
    }

    /// The session that owns the list with this key.
    pub(crate) fn session_of(&self, list: &[u8]) -> Option<Session> {
        Session::parse(list.strip_prefix(self.prefix.part("w:").as_bytes())?)
    }
}
