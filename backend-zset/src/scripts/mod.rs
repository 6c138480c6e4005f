//! Every script, and a typed function that calls it.

mod operator;
mod worker;

use relq_core::QueueName;
use relq_redis::{Conn, Script, bookkeeping::Bookkeeping};

use crate::keys::Keys;

relq_redis::pattern_scripts! {
    in "../../lua/"; library pattern, leasing;
    cancel_listed, cancel_ranked, claim, finish, finish_with_side_records, pass_on, purge,
    recover, stats,
}

/// The names of all scripts that a queue of this backend sends, for monitoring the
/// server or testing the backend.
pub fn script_names() -> impl Iterator<Item = &'static str> {
    all_scripts().map(Script::name)
}

/// A queue's keys and a connection: the scripts are called with them.
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
}
