//! Every script, and a typed function to call it by.

mod operator;
mod worker;

use std::sync::LazyLock;

use futures_util::future::try_join_all;
use queue_core::{Error, QueueName};
use queue_redis::{
    Conn, Script, entry,
    shelf::{Shelf, ShelfScripts, library},
};

use crate::keys::Keys;

pub(crate) use worker::Claimed;

queue_redis::scripts! {
    /// The pattern's own scripts.
    struct Scripts in "../../lua/";
    adopt, append, cancel_ready, claim, extend, finish, finish_tied, pass_on, purge,
    recover, stats,
}

static LIBRARY: LazyLock<String> = LazyLock::new(|| {
    let pattern = include_str!("../../lua/pattern.lua");
    library(&[&bare_header(), pattern].join("\n"))
});
static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| Scripts::new(&LIBRARY));
static SHELF_SCRIPTS: LazyLock<ShelfScripts> =
    LazyLock::new(|| ShelfScripts::new(&LIBRARY));

/// What `pattern.lua` puts before the id and the payload that another client has added.
fn bare_header() -> String {
    let byte = |byte: u8| format!("\\{byte:03}");
    let bytes: String = entry::uncounted_bare_header().into_iter().map(byte).collect();
    format!("local BARE_HEADER = '{bytes}'")
}

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
}

impl Store {
    pub(crate) fn new(conn: Conn, queue: QueueName) -> Self {
        let keys = Keys::new(queue);
        let shelf = Shelf {
            conn: conn.clone(),
            keys: keys.shelf.clone(),
            pattern_keys: keys.of_pattern(),
            scripts: &SHELF_SCRIPTS,
        };
        Self { conn, keys, shelf }
    }

    /// Loads every script in one round trip, so that calls that are sent together
    /// run in their order from the first on.
    pub(crate) async fn load_scripts(&self) -> Result<(), Error> {
        let scripts = SCRIPTS.all().into_iter().chain(SHELF_SCRIPTS.all());
        let load = |script: &'static Script| script.load(&self.conn);
        try_join_all(scripts.map(load)).await.map(drop)
    }
}
