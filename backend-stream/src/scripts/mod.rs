//! The scripts of this backend. Each is called through a typed function.

mod batch;
mod operator;
mod worker;

use std::sync::LazyLock;

use relq_core::QueueName;
use relq_redis::{
    Conn, Library, LibraryFile, Script,
    bookkeeping::{Bookkeeping, BookkeepingScripts, is_sent_by, library},
    entry,
};

use crate::{capabilities::CAPABILITIES, keys::Keys};

pub(crate) use batch::{BatchSnapshot, Letter};

relq_redis::scripts! {
    /// The scripts of this pattern, except those for batches.
    struct Scripts in "../../lua/";
    adopt, append, cancel_ready, claim, extend, finish, finish_with_side_records, pass_on, purge,
    recover, stats,
}

relq_redis::scripts! {
    /// The scripts that read or change batches.
    struct BatchScripts in "../../lua/batch/";
    add, alter, cancel_batch, create, leave_outbox, read_batches, read_outbox, seal, tend,
}

/// The Lua files that scripts can include. Two of them have the name `pattern`, because
/// the bookkeeping calls functions from both: `pattern.lua`, and `batch/pieces.lua`
/// for the functions that handle pieces.
static LIBRARY: LazyLock<Library> = LazyLock::new(|| {
    let file = |name, text| LibraryFile { name, text };
    let mut library = library([
        file("constants", constants().leak()),
        file("batch/entry", include_str!("../../lua/batch/entry.lua")),
        file("pattern", include_str!("../../lua/pattern.lua")),
        file("batch/records", include_str!("../../lua/batch/records.lua")),
        file("pattern", include_str!("../../lua/batch/pieces.lua")),
    ]);
    library.push(file("batch/moves", include_str!("../../lua/batch/moves.lua")));
    library.push(file("batch/sweep", include_str!("../../lua/batch/sweep.lua")));
    Library::new(library)
});
static SCRIPTS: LazyLock<Scripts> = LazyLock::new(|| Scripts::new(&LIBRARY));
static BATCH_SCRIPTS: LazyLock<BatchScripts> =
    LazyLock::new(|| BatchScripts::new(&LIBRARY));
static BOOKKEEPING_SCRIPTS: LazyLock<BookkeepingScripts> =
    LazyLock::new(|| BookkeepingScripts::new(&LIBRARY));

/// Defines the constants that scripts get from Rust. One is the header that is put
/// before the id and payload of another client's entry. The other is how long ids are
/// remembered.
fn constants() -> String {
    let byte = |byte: u8| format!("\\{byte:03}");
    let bytes: String = entry::uncounted_bare_header().into_iter().map(byte).collect();
    let memory_ms = Bookkeeping::memory_ms();
    format!("local BARE_HEADER, MEMORY_MS = '{bytes}', {memory_ms}\n")
}

/// The names of all scripts that a queue of this backend sends. Tools that monitor the
/// server or test the backend need them.
pub fn script_names() -> impl Iterator<Item = &'static str> {
    all_scripts().map(Script::name)
}

/// All scripts that a queue of this backend may send.
pub(crate) fn all_scripts() -> impl Iterator<Item = &'static Script> {
    let own = SCRIPTS.all().into_iter().chain(BATCH_SCRIPTS.all());
    let bookkeeping = BOOKKEEPING_SCRIPTS.all().into_iter();
    own.chain(bookkeeping.filter(|script| is_sent_by(&CAPABILITIES, script)))
}

/// The connection and the keys of a queue, for calls of scripts.
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

#[cfg(test)]
mod tests {
    use super::*;

    /// The scripts that contain the function that drops pieces of a cancelled batch, and
    /// never drop one.
    const DROPS_NONE: [&str; 4] = ["push", "push_tick", "report_progress", "restore"];

    /// R30: each script that may end a job whose id is remembered settles the followers of
    /// that job, and checks their keys before its first write.
    #[test]
    fn each_script_that_ends_jobs_settles_their_followers() {
        let ending = all_scripts().filter(|script| script.uses("remember_id"));
        let ending = ending.filter(|script| !DROPS_NONE.contains(&script.name()));
        let ending: Vec<_> = ending.collect();
        for script in &ending {
            let settles = script.uses("settle_ended") && script.uses("check_leaders");
            assert!(settles, "{}", script.name());
        }
        assert!(ending.len() > 3, "{ending:?}");
    }
}
