//! Defines the Lua scripts of this backend, and a typed function that calls each of
//! them.

mod operator;
mod worker;

use relq_core::QueueName;
use relq_redis::{Conn, Script, bookkeeping::Bookkeeping};

use crate::keys::Keys;

relq_redis::pattern_scripts! {
    of crate::capabilities::CAPABILITIES; in "../../lua/"; library pattern, leasing, claiming;
    cancel_listed, cancel_ranked, claim, finish, finish_and_claim,
    finish_with_side_records, pass_on, purge, recover, stats,
}

/// Returns the names of all scripts that a queue of this backend sends. They help to
/// monitor the server and to test the backend.
pub fn script_names() -> impl Iterator<Item = &'static str> {
    all_scripts().map(Script::name)
}

/// The keys of a queue, and a connection. Its methods call the scripts with both.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) conn: Conn,
    pub(crate) keys: Keys,
    pub(crate) bookkeeping: Bookkeeping,
}

impl Store {
    pub(crate) fn new(conn: Conn, queue: QueueName) -> Self {
        let keys = Keys::new(queue);
        let bookkeeping = Bookkeeping::new(
            &conn,
            &keys.bookkeeping,
            keys.of_pattern(),
            &BOOKKEEPING_SCRIPTS,
        );
        Self { conn, keys, bookkeeping }
    }

    /// Adds a key that no queue has to the keys of a script, if the server is in a cluster:
    /// see [`Keys::absent`].
    fn with_absent<'a>(&'a self, mut keys: Vec<&'a String>) -> Vec<&'a String> {
        if self.conn.is_in_cluster() {
            keys.push(&self.keys.absent);
        }
        keys
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// R30: each script that may end a job whose id is remembered settles the followers of
    /// that job, and checks their keys before its first write.
    #[test]
    fn each_script_that_ends_jobs_settles_their_followers() {
        let ending = all_scripts().filter(|script| script.uses("remember_id"));
        let ending: Vec<_> = ending.collect();
        for script in &ending {
            let settles = script.uses("settle_ended") && script.uses("check_leaders");
            assert!(settles, "{}", script.name());
        }
        assert!(ending.len() > 3, "{ending:?}");
    }
}
