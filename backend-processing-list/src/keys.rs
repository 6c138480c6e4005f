//! The keys of a queue, and what each one holds.
//!
//! ```text
//!  ready        LIST  Q itself: oldest on the right
//!  handed       LIST  jobs that a waiting claim of the shared mode has moved; they
//!                     are older than those in Q
//!  w:SESSION    LIST  jobs that one worker holds, oldest on the right
//!  processing   LIST  jobs of workers of the shared mode, oldest on the right
//!  leased       ZSET  lease -> end (ms)
//!  workers      ZSET  session -> end of its last lease (ms)
//!  retired      ZSET  session that ended -> until when its list is watched (ms)
//!  marker       STRING  the queue's backend: see relq-redis's `marker.rs`
//! ```
//!
//! All other keys belong to the bookkeeping ([`relq_redis::bookkeeping`]). A key exists
//! only while it holds something. A ready job costs one list element and nothing else.
//!
//! Earlier versions removed the end of a lease from `leased` when a heartbeat named it. A
//! stamped element without an end ends with its session.

use relq_core::QueueName;
use relq_redis::{KeyPrefix, bookkeeping::BookkeepingKeys, escape_glob};

use crate::session::{Session, Site};

/// The names of all Redis keys of one queue.
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

    /// The keys that each script with `pattern.lua` binds, in the order in which it
    /// expects them.
    pub(crate) fn of_pattern(&self) -> Vec<String> {
        [&self.ready, &self.leased, &self.workers, &self.retired]
            .map(String::clone)
            .into()
    }

    /// The key of the processing list: the shared one, or a worker's own.
    pub(crate) fn list(&self, site: &Site) -> String {
        match site {
            Site::Shared => self.processing.clone(),
            Site::Own(session) => self.own_list(session),
        }
    }

    /// The key of the list that one worker's session owns.
    pub(crate) fn own_list(&self, session: &Session) -> String {
        self.prefix.part(&format!("w:{session}"))
    }

    /// A glob pattern for SCAN that matches the key of every worker's own list, also of
    /// workers that are not registered.
    pub(crate) fn every_own_list(&self) -> String {
        escape_glob(&self.prefix.part("w:")) + "*"
    }

    /// The session that owns the list with this key. `None` if the key is not that of a
    /// worker's own list.
    pub(crate) fn session_of(&self, list: &[u8]) -> Option<Session> {
        Session::parse(list.strip_prefix(self.prefix.part("w:").as_bytes())?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R9: the search for lists finds those of its own queue, whatever its name, and no
    /// others.
    #[test]
    fn a_search_for_lists_matches_the_own_queue_only() {
        for (name, pattern) in [
            ("emails", "{emails}:w:*"),
            ("[a]", r"{\[a\]}:w:*"),
            ("a*?", r"{a\*\?}:w:*"),
        ] {
            let keys = Keys::new(QueueName::new(name).expect("a valid name"));
            assert_eq!(keys.every_own_list(), pattern);
        }
    }
}
