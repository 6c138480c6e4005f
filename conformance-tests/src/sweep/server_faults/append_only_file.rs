//! Reads and truncates the append-only file of a server.

use std::{fs, path::Path};

use tempfile::TempDir;

use crate::server::Server;

const FOLDER: &str = "appendonlydir";
const WRITES: &str = "appendonly.aof.1.incr.aof";

/// A server whose append-only file can be read.
pub(super) struct Recorded {
    pub(super) server: Server,
    folder: TempDir,
}

impl Recorded {
    pub(super) fn start() -> Self {
        let folder = tempfile::tempdir().expect("a temp dir");
        Self { server: start_in(folder.path()), folder }
    }

    /// Returns the content of the append-only file: all writes so far. The server has
    /// synced each of them to the disk.
    pub(super) fn writes(&self) -> Vec<u8> {
        let file = self.folder.path().join(FOLDER).join(WRITES);
        fs::read(file).expect("the server writes its append-only file")
    }

    /// Starts another server on an append-only file with the content `writes`, which is
    /// the part that a power cut left.
    pub(super) fn after_cut(&self, writes: &[u8]) -> Self {
        let folder = tempfile::tempdir().expect("a temp dir");
        let (from, to) = (self.folder.path().join(FOLDER), folder.path().join(FOLDER));
        fs::create_dir(&to).expect("an empty folder");
        for file in fs::read_dir(from).expect("the server made its folder") {
            let file = file.expect("a file");
            fs::copy(file.path(), to.join(file.file_name())).expect("copied");
        }
        fs::write(to.join(WRITES), writes).expect("written");
        Self { server: start_in(folder.path()), folder }
    }
}

fn start_in(folder: &Path) -> Server {
    let folder = folder.to_str().expect("temp dirs have plain names");
    Server::start_with(&[
        "--dir",
        folder,
        "--appendonly",
        "yes",
        "--appendfsync",
        "always",
        "--auto-aof-rewrite-percentage",
        "0",
    ])
}

/// Returns the offset of the end of each command in `writes`.
pub(super) fn ends(writes: &[u8]) -> Vec<usize> {
    let mut ends = Vec::new();
    let mut at = 0;
    while at < writes.len() {
        let (words, mut next) = number(writes, at, b'*');
        for _ in 0..words {
            let (length, start) = number(writes, next, b'$');
            next = start + length + 2;
        }
        assert!(next <= writes.len(), "the file ends within a command");
        ends.push(next);
        at = next;
    }
    ends
}

/// Parses the line at offset `at`, which must begin with the byte `mark`. Returns the
/// number after that byte, and the offset of the next line.
fn number(writes: &[u8], at: usize, mark: u8) -> (usize, usize) {
    assert_eq!(writes[at], mark, "the file is made of commands");
    let length = writes[at..].windows(2).position(|two| two == b"\r\n");
    let length = length.expect("a line ends");
    let digits = String::from_utf8_lossy(&writes[at + 1..at + length]);
    (digits.parse().expect("a number"), at + length + 2)
}
