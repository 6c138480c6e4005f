//! Whether the program has input to read although no file is named.

use std::{io, path::Path};

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

/// Whether this is the name of standard input.
pub(crate) fn is_name_of(file: &Path) -> bool {
    file == Path::new(STANDARD_INPUT)
}
