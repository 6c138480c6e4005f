//! The bookkeeping's scripts, built for one pattern.

use crate::entry;

crate::scripts! {
    /// The bookkeeping's scripts, built for one pattern. A backend has one instance for
    /// all its queues.
    pub struct BookkeepingScripts in "../../lua/bookkeeping/";
    cancel, extend, fail, forget, give_back, promote, purge_dead, push, redrive, resume,
}

/// Defines the scripts of a pattern from a folder, whose path is relative to the
/// calling file: the pattern's own scripts in `SCRIPTS` and the bookkeeping's in
/// `BOOKKEEPING_SCRIPTS`. Both get the pattern's library: the files named after
/// `library`, joined in their order.
#[macro_export]
macro_rules! pattern_scripts {
    (in $folder:literal; library $($library:literal),+; $($name:ident),* $(,)?) => {
        $crate::scripts! {
            /// The pattern's own scripts.
            struct Scripts in $folder;
            $($name),*
        }

        static LIBRARY: std::sync::LazyLock<String> = std::sync::LazyLock::new(|| {
            let files = [$(include_str!(concat!($folder, $library))),+];
            $crate::bookkeeping::library(&files.join("\n"))
        });
        static SCRIPTS: std::sync::LazyLock<Scripts> =
            std::sync::LazyLock::new(|| Scripts::new(&LIBRARY));
        static BOOKKEEPING_SCRIPTS: std::sync::LazyLock<$crate::bookkeeping::BookkeepingScripts> =
            std::sync::LazyLock::new(|| $crate::bookkeeping::BookkeepingScripts::new(&LIBRARY));

        /// All scripts that a queue of this backend may send.
        pub(crate) fn all_scripts() -> impl Iterator<Item = &'static $crate::Script> {
            SCRIPTS.all().into_iter().chain(BOOKKEEPING_SCRIPTS.all())
        }
    };
}

/// The Lua functions that the scripts of a pattern may call. `pattern` is the text of
/// its `pattern.lua`; the functions for entries and for the bookkeeping are added to
/// it.
pub fn library(pattern: &str) -> String {
    [
        entry::LUA,
        include_str!("../../lua/bookkeeping/side_records.lua"),
        pattern,
        include_str!("../../lua/bookkeeping/moves.lua"),
    ]
    .join("\n")
}
