//! Runs a program of calls on a recorded disk, and records the result of each call.

use std::{
    env,
    future::Future,
    path::PathBuf,
    sync::Arc,
    thread,
    time::{Duration, Instant},
};

use relq_core::{Error, QueueName};
use relq_power_cut::Disk;
use relq_sqlite::{
    Durability, SqliteConfig, SqliteQueue,
    testing::{Replace, with_statements_replaced},
};
use tempfile::TempDir;

use crate::judge::judge;
use crate::model::Model;

/// How many files, each as a power cut may leave it, one test opens.
/// `RELQ_POWER_CUT_IMAGES` changes it. With this number all tests here take some
/// seconds.
const IMAGES: usize = 300;
const SEED: u64 = 20_261_123;
const PATIENCE: Duration = Duration::from_secs(60);
/// How many mark numbers are reserved for each caller. Each call writes marks into
/// the recording of the disk, and a caller never writes as many as this.
pub(crate) const MARKS: u64 = 1_000_000;

/// The calls of one caller, with the expected content of the store after each. The
/// first entry is the opening of the store.
#[derive(Debug)]
pub(crate) struct History {
    /// The prefix of all ids of this caller. Empty if the program has only one caller.
    pub(crate) caller: String,
    pub(crate) calls: Vec<(String, Model)>,
}

/// One test: the recorded disk and folder that its program uses, and its settings.
pub(crate) struct Run {
    pub(crate) test: &'static str,
    pub(crate) durability: Durability,
    pub(crate) images: usize,
    pub(crate) seed: u64,
    pub(crate) disk: Arc<Disk>,
    replace: Replace,
    folder: TempDir,
}

fn number(variable: &str) -> Option<u64> {
    env::var(variable).ok().map(|text| text.parse().expect("the variable is a number"))
}

impl Run {
    pub(crate) fn new(test: &'static str, durability: Durability) -> Self {
        Self::broken(test, durability, Arc::new(|_| None))
    }

    /// Creates the run of a mutant. `replace` changes the statements that it executes.
    pub(crate) fn broken(
        test: &'static str,
        durability: Durability,
        replace: Replace,
    ) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let images = number("RELQ_POWER_CUT_IMAGES");
        Self {
            test,
            durability,
            images: images.map_or(IMAGES, |images| usize::try_from(images).unwrap()),
            seed: number("RELQ_POWER_CUT_SEED").unwrap_or(SEED),
            disk: Disk::record(folder.path()).unwrap(),
            replace,
            folder,
        }
    }

    /// Runs the program, and then opens files as power cuts leave them. Returns a
    /// message for each broken promise.
    pub(crate) fn judge<F: Future<Output = Vec<History>>>(
        mut self,
        program: impl FnOnce(&mut Self) -> F,
    ) -> Vec<String> {
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let program = program(&mut self);
        let histories = runtime.block_on(program);
        judge(&self, &histories, &runtime)
    }

    pub(crate) fn file(&self) -> PathBuf {
        self.folder.path().join("queue.db")
    }

    /// Returns the database file, the durability and the recorded disk that this
    /// run's program uses.
    pub(crate) fn site(&self) -> Site {
        Site {
            file: self.file(),
            durability: self.durability,
            replace: Arc::clone(&self.replace),
            disk: Arc::clone(&self.disk),
        }
    }

    /// Starts a new recording of the disk. It begins with the files that are in the
    /// folder now.
    pub(crate) fn begin_here(&mut self) {
        self.disk = Disk::record(self.folder.path()).unwrap();
    }
}

/// The environment of a program: the database file, the durability, and the recorded
/// disk. The program opens its stores with it.
pub(crate) struct Site {
    pub(crate) file: PathBuf,
    durability: Durability,
    replace: Replace,
    disk: Arc<Disk>,
}

impl Site {
    pub(crate) async fn open(&self) -> SqliteQueue {
        let replace = Arc::clone(&self.replace);
        // Make a checkpoint after a few pages, so that even a short program makes some.
        let often = Arc::new(move |sql: &str| {
            let replaced = replace(sql);
            if !sql.starts_with("PRAGMA synchronous") {
                return replaced;
            }
            let sql = replaced.unwrap_or_else(|| sql.to_owned());
            Some(format!("{sql}; PRAGMA wal_autocheckpoint = 24"))
        });
        let config = SqliteConfig::file(&self.file).durability(self.durability);
        let config = with_statements_replaced(config, often);
        SqliteQueue::open(config, QueueName::new("jobs").unwrap()).await.unwrap()
    }

    /// Waits until all connections are closed. The last one removes the log when it
    /// closes, so this waits until the log is gone.
    pub(crate) fn wait_until_closed(&self) {
        let log = self.file.with_extension("db-wal");
        let began = Instant::now();
        while log.exists() {
            assert!(began.elapsed() < PATIENCE, "a connection is still open");
            thread::sleep(Duration::from_millis(1));
        }
    }

    pub(crate) fn caller(&self, number: u64, name: &str, first: Model) -> Caller {
        let calls = vec![("open".to_owned(), first)];
        let history = History { caller: name.to_owned(), calls };
        Caller { disk: Arc::clone(&self.disk), number, history }
    }
}

/// Makes the calls of a program in order. Records after each call the expected content
/// of the store.
pub(crate) struct Caller {
    disk: Arc<Disk>,
    number: u64,
    pub(crate) history: History,
}

impl Caller {
    /// Makes a call. `change` applies the expected effect of the call to the model.
    pub(crate) async fn call<T>(
        &mut self,
        name: &str,
        call: impl Future<Output = Result<T, Error>>,
        change: impl FnOnce(&mut Model, &T),
    ) -> T {
        let mark = self.number * MARKS + self.history.calls.len() as u64 * 2;
        self.disk.mark(mark);
        let answer = call.await.unwrap();
        self.disk.mark(mark + 1);
        let mut after = self.history.calls.last().expect("it was opened").1.clone();
        change(&mut after, &answer);
        self.history.calls.push((name.to_owned(), after));
        answer
    }
}
