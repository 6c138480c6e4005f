//! Every script, and a typed function to call it by.

mod operator;
mod worker;

use std::sync::LazyLock;

use futures_util::future::try_join_all;
use queue_core::{Error, QueueName};
use queue_redis::{
    Conn, Script,
    shelf::{Shelf, ShelfScripts, library},
};

use crate::{FinishBy, keys::Keys};

pub(crate) use worker::{Claimed, Found, Recovery, Turned};

queue_redis::scripts! {
    /// The pattern's own scripts.
    struct Scripts in "../../lua/";
    cancel_ringed, claim, extend, finish, leave, pass_on, purge, push_plain, recover, stats,
}

static LIBRARY: LazyLock<String> = LazyLock::new(|| {
    let pattern = include_str!("../../lua/pattern.lua");
    library(&[pattern, include_str!("../../lua/leasing.lua")].join("\n"))
});
static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| Scripts::new(&LIBRARY));
static SHELF_SCRIPTS: LazyLock<ShelfScripts> =
    LazyLock::new(|| ShelfScripts::new(&LIBRARY));

/// The names of all scripts that a queue of this backend sends, for who watches the
/// server or judges the backend.
pub fn script_names() -> impl Iterator<Item = &'static str> {
    SCRIPTS.all().into_iter().chain(SHELF_SCRIPTS.all()).map(Script::name)
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
        let shelf = Shelf {
            conn: conn.clone(),
            keys: keys.shelf.clone(),
            pattern_keys: keys.of_pattern(),
            scripts: &SHELF_SCRIPTS,
        };
        Self { conn, keys, shelf, finish_by }
    }

    /// Loads every script in one round trip, so that calls that are sent together
    /// run in their order from the first on.
    pub(crate) async fn load_scripts(&self) -> Result<(), Error> {
        let scripts = SCRIPTS.all().into_iter().chain(SHELF_SCRIPTS.all());
        let load = |script: &'static Script| script.load(&self.conn);
        try_join_all(scripts.map(load)).await.map(drop)
    }
}
