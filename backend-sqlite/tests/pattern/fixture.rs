//! A folder with a queue's file, and processes that share it.

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

/// Longer than any step of a test takes.
pub(crate) const LONG: Duration = Duration::from_secs(120);
/// The time limit for a condition: enough for a slow and busy disk.
const PATIENCE: Duration = Duration::from_secs(60);
/// The variable that tells a child process where its file is.
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

    /// Where the queue's file is, or will be.
    pub(crate) fn file(&self) -> PathBuf {
        self.0.path().join("queue.db")
    }

    pub(crate) fn config(&self) -> SqliteConfig {
        SqliteConfig::file(self.file())
    }

    /// A handle on the queue in this folder.
    pub(crate) async fn queue(&self) -> SqliteQueue {
        open(self.config()).await.unwrap()
    }
}

pub(crate) async fn open(config: SqliteConfig) -> Result<SqliteQueue, Error> {
    SqliteQueue::open(config, QueueName::new("jobs").unwrap()).await
}

/// A request for one job, for a worker of that name.
pub(crate) fn ask(worker: &str) -> ClaimRequest {
    ClaimRequest::new(WorkerId::new(worker).unwrap(), LONG)
}

pub(crate) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

/// A connection to the file that does not use relq.
pub(crate) fn raw(file: &Path) -> rusqlite::Connection {
    rusqlite::Connection::open(file).unwrap()
}

/// Waits until a condition holds.
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

/// The command that runs one ignored test of this program in a process of its own on
/// that file.
pub(crate) fn child(program: &Path, test: &str, file: &Path) -> Command {
    let mut command = Command::new(program);
    command.args([test, "--exact", "--ignored", "--nocapture", "--test-threads=1"]);
    command.env(FILE_VARIABLE, file).stdout(Stdio::null());
    command
}

/// Starts that test in a process of its own.
pub(crate) fn spawn(test: &str, file: &Path) -> Process {
    let program = std::env::current_exe().unwrap();
    Process(child(&program, test, file).spawn().unwrap())
}

/// The file that this process was started for.
pub(crate) fn file_of_child() -> PathBuf {
    std::env::var_os(FILE_VARIABLE).expect("started by another test").into()
}

/// A process that is killed when its test ends.
pub(crate) struct Process(Child);

impl Process {
    pub(crate) fn kill(&mut self) {
        self.0.kill().unwrap();
        self.0.wait().unwrap();
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        // The process may have ended already.
        self.0.kill().ok();
        self.0.wait().ok();
    }
}

/// Numbers that processes record beside the queue, one write each, so that a kill never
/// cuts a number.
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
