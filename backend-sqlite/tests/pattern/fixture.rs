//! The fixture of these tests: a folder with a queue's file, and child processes that
//! open the same file.

use std::{
    fs::OpenOptions,
    future::Future,
    io::Write as _,
    num::NonZeroU32,
    path::{Path, PathBuf},
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use relq_core::{ClaimRequest, Error, QueueName, WorkerId};
use relq_sqlite::{SqliteConfig, SqliteQueue};
use tempfile::TempDir;

/// A duration that is longer than any step of a test.
pub(crate) const LONG: Duration = Duration::from_secs(120);
/// How long a test waits for a condition: long enough even on a slow and busy disk.
const PATIENCE: Duration = Duration::from_secs(60);
/// The environment variable that names the queue's file for a child process.
const FILE_VARIABLE: &str = "RELQ_TEST_FILE";

/// A folder for one test, removed at its end.
pub(crate) struct Folder(TempDir);

impl Folder {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self) -> &Path {
        self.0.path()
    }

    /// The path of the queue's file, which may not exist yet.
    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join("queue.db")
    }

    pub(crate) fn config(&self) -> SqliteConfig {
        SqliteConfig::file(self.file())
    }

    /// Drops the last handle on the queue in this folder, and waits until its file is
    /// closed. The database thread closes it some time after the handle is dropped: it
    /// copies the log into the file and removes the log.
    pub(crate) async fn close(&self, queue: SqliteQueue) {
        drop(queue);
        let log = self.file().with_extension("db-wal");
        eventually("the log is gone", || async { !log.exists() }).await;
    }

    /// Opens a new handle on the queue in this folder.
    pub(crate) async fn queue(&self) -> SqliteQueue {
        open(self.config()).await.unwrap()
    }
}

pub(crate) async fn open(config: SqliteConfig) -> Result<SqliteQueue, Error> {
    SqliteQueue::open(config, QueueName::new("jobs").unwrap()).await
}

/// A request to claim one job for the worker with the given name.
pub(crate) fn ask(worker: &str) -> ClaimRequest {
    ClaimRequest::new(WorkerId::new(worker).unwrap(), LONG)
}

pub(crate) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

/// Opens the file with plain SQLite, as a program without relq does.
pub(crate) fn raw(file: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(file).unwrap()
}

/// Waits until a condition is true. If it is still false after `PATIENCE`, panics with
/// `what` in the message.
pub(crate) async fn eventually<F: Future<Output = bool>>(
    what: &str,
    mut holds: impl FnMut() -> F,
) {
    let began = Instant::now();
    while !holds().await {
        assert!(began.elapsed() < PATIENCE, "never came: {what}");
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
}

/// Builds a command that runs one ignored test of `program` in a child process. The
/// child uses the queue in the given file.
pub(crate) fn child(program: &Path, test: &str, file: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(FILE_VARIABLE, file).stdout(Stdio::null());
    command
}

/// Starts an ignored test of this program in a child process, which uses the given
/// file.
pub(crate) fn spawn(test: &str, file: &Path) -> Process {
    let program = std::env::current_exe().unwrap();
    Process(child(&program, test, file).spawn().unwrap())
}

/// Returns the queue's file that the parent process named. Called in a child process.
pub(crate) fn file_of_child() -> PathBuf {
    std::env::var_os(FILE_VARIABLE).expect("started by another test").into()
}

/// A child process, which is killed when the test that started it ends.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // Ignore errors: the process may have ended already.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// A file beside the queue, in which processes record numbers. A number is written with
/// one write, so a killed process never leaves half a number.
pub(crate) struct Notes(PathBuf);

impl Notes {
    pub(crate) fn of(file: &Path, name: &str) -> Self {
        Self(file.with_extension(name))
    }

    pub(crate) fn add(&self, numbers: &[u64]) {
        let lines: String =
            numbers.iter().map(|number| format!("{number}\n")).collect();
        let mut file =
            OpenOptions::new().create(true).append(true).open(&self.0).unwrap();
        assert_eq!(file.write(lines.as_bytes()).unwrap(), lines.len());
    }

    pub(crate) fn read(&self) -> Vec<u64> {
        let text = std::fs::read_to_string(&self.0).unwrap_or_default();
        text.lines().map(|line| line.parse().unwrap()).collect()
    }
}
