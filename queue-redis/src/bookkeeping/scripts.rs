//! The bookkeeping's scripts, built for one pattern.

use relq_core::capabilities::{Capabilities, Capability};

use crate::{LibraryFile, Script, entry};

crate::scripts! {
    /// The bookkeeping's scripts, built for one pattern. A backend has one instance for
    /// all its queues.
    pub struct BookkeepingScripts in "../../lua/bookkeeping/";
    cancel, extend, fail, find_job, forget, give_back, list_workers, promote, purge_dead, push,
    push_tick, put_schedule, read_members, read_results, redrive, remove_worker,
    report_progress, report_worker, restore, resume, run_now,
}

/// Whether a backend with these capabilities sends this script of the bookkeeping.
pub fn is_sent_by(capabilities: &Capabilities, script: &Script) -> bool {
    match script.name() {
        "push_tick" | "put_schedule" => capabilities.supports(Capability::Schedules),
        "read_results" | "report_progress" => {
            capabilities.supports(Capability::Results)
        }
        "find_job" | "run_now" | "list_workers" | "report_worker" | "remove_worker" => {
            capabilities.supports(Capability::Inspect)
        }
        "restore" => capabilities.supports(Capability::Restore),
        _ => true,
    }
}

/// Defines the scripts of a pattern from a folder, whose path is relative to the
/// calling file: the pattern's own scripts in `SCRIPTS` and the bookkeeping's in
/// `BOOKKEEPING_SCRIPTS`. Both may call the functions of the pattern's library files,
/// which the macro's first arguments name.
#[macro_export]
macro_rules! pattern_scripts {
    (of $capabilities:path; in $folder:literal; library $($library:ident),+; $($name:ident),* $(,)?) => {
        $crate::scripts! {
            /// The pattern's own scripts.
            struct Scripts in $folder;
            $($name),*
        }

        static LIBRARY: std::sync::LazyLock<$crate::Library> =
            std::sync::LazyLock::new(|| {
                $crate::Library::new($crate::bookkeeping::library([
                    $($crate::LibraryFile {
                        name: stringify!($library),
                        text: include_str!(
                            concat!($folder, stringify!($library), ".lua")
                        ),
                    }),+
                ]))
            });
        static SCRIPTS: std::sync::LazyLock<Scripts> =
            std::sync::LazyLock::new(|| Scripts::new(&LIBRARY));
        static BOOKKEEPING_SCRIPTS: std::sync::LazyLock<$crate::bookkeeping::BookkeepingScripts> =
            std::sync::LazyLock::new(|| $crate::bookkeeping::BookkeepingScripts::new(&LIBRARY));

        /// All scripts that a queue of this backend may send.
        pub(crate) fn all_scripts() -> impl Iterator<Item = &'static $crate::Script> {
            let bookkeeping = BOOKKEEPING_SCRIPTS.all().into_iter().filter(|script| {
                $crate::bookkeeping::is_sent_by(&$capabilities, script)
            });
            SCRIPTS.all().into_iter().chain(bookkeeping)
        }
    };
}

/// The Lua functions that the scripts of a pattern may call: those for entries, for the
/// bookkeeping, and the pattern's own.
pub fn library(pattern: impl IntoIterator<Item = LibraryFile>) -> Vec<LibraryFile> {
    let file = |name, text| LibraryFile { name, text };
    let side_records = include_str!("../../lua/bookkeeping/side_records.lua");
    let moves = include_str!("../../lua/bookkeeping/moves.lua");
    let mut library =
        vec![file("entry", entry::LUA), file("side_records", side_records)];
    library.extend(pattern);
    library.push(file("moves", moves));
    library
        .push(file("followers", include_str!("../../lua/bookkeeping/followers.lua")));
    library.push(file("members", include_str!("../../lua/bookkeeping/members.lua")));
    library.push(file("pushing", include_str!("../../lua/bookkeeping/pushing.lua")));
    library
}
