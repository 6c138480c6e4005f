//! Every script, and a typed function to call it by.

mod operator;
mod worker;

use queue_core::{Error, QueueName};
use queue_redis::{Conn, Script, shelf::Shelf};

use crate::{FinishBy, keys::Keys};

pub(crate) use worker::{Claimed, Found, Recovery, Turned};

queue_redis::pattern_scripts! {
    in "../../lua/"; library "pattern.lua", "leasing.lua";
    cancel_ringed, claim, finish, leave, pass_on, purge, push_plain, recover, stats,
}

/// The names of all scripts that a queue of this backend sends, for who watches the
/// server or judges the backend.
pub fn script_names() -> impl Iterator<Item = &'static str> {
    all_scripts().map(Script::name)
}

/// A queue's keys on a connection: what the scripts are called on.
#[derive(Debug, Clone)]
pub(crate) struct Store {
    pub(crate) conn: Conn,
    pub(crate) keys: Keys,
    pub(crate) shelf: Shelf,
    pub(crate) finish_by: FinishBy,
}

impl Store {
    pub(crate) fn new(conn: Conn, queue: QueueName, finish_by: FinishBy) -> Self {
        let keys = Keys::new(queue);
        let shelf = Shelf::new(&conn, &keys.shelf, keys.of_pattern(), &SHELF_SCRIPTS);
        Self { conn, keys, shelf, finish_by }
    }

    pub(crate) async fn load_scripts(&self) -> Result<(), Error> {
        Script::load_all(all_scripts(), &self.conn).await
    }
}
