//! The shelf's scripts, as they run on one pattern.

use crate::entry;

crate::scripts! {
    /// The shelf's scripts on one pattern. A backend has one of them, for all its
    /// queues.
    pub struct ShelfScripts in "../../lua/shelf/";
    cancel, extend, fail, forget, give_back, promote, purge_dead, push, redrive, resume,
}

/// Makes the scripts of a pattern from a folder that is named from the calling file on:
/// its own behind its library, in `SCRIPTS`, and the shelf's, in `SHELF_SCRIPTS`. The
/// library is made of the files named first, in their order.
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
            $crate::shelf::library(&files.join("\n"))
        });
        static SCRIPTS: std::sync::LazyLock<Scripts> =
            std::sync::LazyLock::new(|| Scripts::new(&LIBRARY));
        static SHELF_SCRIPTS: std::sync::LazyLock<$crate::shelf::ShelfScripts> =
            std::sync::LazyLock::new(|| $crate::shelf::ShelfScripts::new(&LIBRARY));

        /// All scripts that a queue of this backend may send.
        fn all_scripts() -> impl Iterator<Item = &'static $crate::Script> {
            SCRIPTS.all().into_iter().chain(SHELF_SCRIPTS.all())
        }
    };
}

/// The functions that scripts on a pattern may call: of entries, of the shelf and of
/// the pattern, whose `pattern.lua` this is given.
pub fn library(pattern: &str) -> String {
    [
        entry::LUA,
        include_str!("../../lua/shelf/books.lua"),
        pattern,
        include_str!("../../lua/shelf/moves.lua"),
    ]
    .join("\n")
}
