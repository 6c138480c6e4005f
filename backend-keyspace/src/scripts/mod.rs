//! Defines the Lua scripts of this backend, and a typed function that calls each of
//! them.

mod operator;
mod worker;

use bytes::Bytes;
use relq_core::QueueName;
use relq_redis::{Call, Conn, Script, bookkeeping::Bookkeeping};

use crate::keys::Keys;

pub(crate) use operator::PurgePage;
pub(crate) use worker::{Ask, PAGE, Picked, Swept, Taken, Wanted};

relq_redis::pattern_scripts! {
    of crate::capabilities::CAPABILITIES; in "../../lua/"; library pattern;
    adopt, append, cancel_ready, claim, finish, finish_with_side_records, free_deleted, overdue,
    pick, purge, recover, notify, stats, sweep,
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

    /// Begins a call of a script. It passes the queue's own keys, and after them
    /// `of_jobs`, the keys of the jobs that the script handles.
    fn call<'a>(&self, script: &'a Script, of_jobs: &[Bytes]) -> Call<'a> {
        let own = self.keys.bookkeeping.all().map(str::as_bytes);
        let of_pattern = self.keys.of_pattern();
        let of_pattern = of_pattern.iter().map(String::as_bytes);
        let of_jobs = of_jobs.iter().map(|key| &key[..]);
        let keys: Vec<_> = own.into_iter().chain(of_pattern).chain(of_jobs).collect();
        script.keys(&keys)
    }
}
