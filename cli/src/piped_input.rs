//! The file that a command reads, or standard input in its place.

use std::{
    io,
    path::{Path, PathBuf},
};

use rustix::fs::{FileType, fstat};

/// The name of standard input in place of that of a file.
pub(crate) const STANDARD_INPUT: &str = "-";

/// Whether standard input is a pipe, a socket or a file. A terminal is not, so that a
/// command without its arguments does not wait for a person to type, and neither is
/// `/dev/null`.
pub(crate) fn is_there() -> bool {
    fstat(io::stdin()).is_ok_and(|input| {
        matches!(
            FileType::from_raw_mode(input.st_mode),
            FileType::Fifo | FileType::Socket | FileType::RegularFile
        )
    })
}

/// Returns the named file, or without one standard input if it has something to read.
pub(crate) fn or_input(named: Option<&Path>) -> Option<PathBuf> {
    let input = || is_there().then(|| STANDARD_INPUT.into());
    named.map(Path::to_owned).or_else(input)
}

/// Returns the words for a file in messages, such as "the file jobs.jsonl".
pub(crate) fn in_words(file: &Path) -> String {
    if is_name_of(file) {
        return "standard input".to_owned();
    }
    format!("the file {}", file.display())
}

/// Whether this is the name of standard input.
pub(crate) fn is_name_of(file: &Path) -> bool {
    file == Path::new(STANDARD_INPUT)
}
