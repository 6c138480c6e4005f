//! Passes a payload to a command as its standard input.
//!
//! The payload is in a file without a name, not in a pipe. So the command can read all
//! of it even when the worker is killed. With a pipe, a killed worker could leave a
//! truncated payload, which would look like a complete one.

use std::{
    fs::File,
    io::{self, Seek, Write},
};

/// A file that holds `payload`, to be read from its start.
pub(super) fn payload_file(payload: &[u8]) -> io::Result<File> {
    let mut file = nameless_file()?;
    file.write_all(payload)?;
    file.rewind()?;
    Ok(file)
}

#[cfg(target_os = "linux")]
fn nameless_file() -> io::Result<File> {
    use rustix::fs::{MemfdFlags, memfd_create};
    Ok(memfd_create("relq-payload", MemfdFlags::CLOEXEC)?.into())
}

#[cfg(not(target_os = "linux"))]
fn nameless_file() -> io::Result<File> {
    tempfile::tempfile()
}
