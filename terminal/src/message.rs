//! Prints messages for the user on standard error.

use std::io::{self, Write};

use crate::printable::{printable, printable_lines};

/// Prints a message for the user on standard error. A failed write is ignored, because
/// there is no other place to report it.
pub fn say(message: &str) {
    let _ = writeln!(io::stderr(), "{}", printable(message));
}

/// Prints a message of several lines. Otherwise the same as [`say`].
pub fn say_lines(message: &str) {
    let _ = writeln!(io::stderr(), "{}", printable_lines(message));
}
