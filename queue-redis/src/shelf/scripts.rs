//! The shelf's scripts, as they run on one pattern.

use crate::entry;

crate::scripts! {
    /// The shelf's scripts on one pattern. A backend has one of them, for all its
    /// queues.
    pub struct ShelfScripts in "../../lua/shelf/";
    cancel, fail, forget, give_back, promote, purge_dead, push, redrive, resume,
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
