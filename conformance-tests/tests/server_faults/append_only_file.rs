//! A server's file of writes: read, and cut short.

use std::{fs, path::Path};

use conformance_tests::server::Server;
use tempfile::TempDir;

const FOLDER: &str = "appendonlydir";
const WRITES: &str = "appendonly.aof.1.incr.aof";

/// A server whose file of writes can be looked at.
pub(crate) struct Recorded {
    pub(crate) server: Server,
    folder: TempDir,
}

impl Recorded {
    pub(crate) fn start() -> Self {
        let folder = tempfile::tempdir().unwrap();
        Self { server: start_in(folder.path()), folder }
    }

    /// All writes so far, each of them on the disk.
    pub(crate) fn writes(&self) -> Vec<u8> {
        fs::read(self.folder.path().join(FOLDER).join(WRITES)).unwrap()
    }

    /// Starts another server, on what a power cut left of these writes.
    pub(crate) fn after_cut(&self, writes: &[u8]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (from, to) = (self.folder.path().join(FOLDER), folder.path().join(FOLDER));
        fs::create_dir(&to).unwrap();
        for file in fs::read_dir(from).unwrap() {
            let file = file.unwrap();
            fs::copy(file.path(), to.join(file.file_name())).unwrap();
        }
        fs::write(to.join(WRITES), writes).unwrap();
        Self { server: start_in(folder.path()), folder }
    }
}

fn start_in(folder: &Path) -> Server {
    let folder = folder.to_str().unwrap();
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

/// Where each command of `writes` ends.
pub(crate) fn ends(writes: &[u8]) -> Vec<usize> {
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

/// The number of the line at `at`, and where the next begins.
fn number(writes: &[u8], at: usize, mark: u8) -> (usize, usize) {
    assert_eq!(writes[at], mark, "the file is made of commands");
    let length = writes[at..].windows(2).position(|two| two == b"\r\n").unwrap();
    let digits = std::str::from_utf8(&writes[at + 1..at + length]).unwrap();
    (digits.parse().unwrap(), at + length + 2)
}
