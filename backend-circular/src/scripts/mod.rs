//! Defines the Lua scripts of this backend, and a typed function that calls each of
//! them.

mod operator;
mod worker;

use std::sync::{Arc, atomic::AtomicUsize};

use relq_core::QueueName;
use relq_redis::{Conn, Script, bookkeeping::Bookkeeping};

use crate::{FinishBy, keys::Keys};

pub(crate) use worker::{Recovery, Rotated};

relq_redis::pattern_scripts! {
    of crate::capabilities::CAPABILITIES; in "../../lua/"; library pattern, leasing;
    cancel_ringed, claim, finish, release_worker, pass_on, purge, push_plain, recover, stats,
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
    pub(crate) finish_by: FinishBy,
    /// The size of the element that this store claimed last, in bytes; zero if it has
    /// claimed none.
    last_claimed: Arc<AtomicUsize>,
}

impl Store {
    pub(crate) fn new(conn: Conn, queue: QueueName, finish_by: FinishBy) -> Self {
        let keys = Keys::new(queue);
        let bookkeeping = Bookkeeping::new(
            &conn,
            &keys.bookkeeping,
            keys.of_pattern(),
            &BOOKKEEPING_SCRIPTS,
        );
        Self { conn, keys, bookkeeping, finish_by, last_claimed: Arc::default() }
    }
}
