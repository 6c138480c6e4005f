//! One run: a program of calls on a recorded disk, and what each caller was told.

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

/// The size of the sample of one test, so that all tests of the target take some
/// seconds.
const IMAGES: usize = 300;
const SEED: u64 = 20_261_123;
const PATIENCE: Duration = Duration::from_secs(60);
/// Marks of one caller are below this number, and each caller begins at a multiple.
pub(crate) const MARKS: u64 = 1_000_000;

/// The calls of one caller, and the model after each of them. The first one is the
/// opening.
#[derive(Debug)]
pub(crate) struct History {
    /// The beginning of the caller's ids; empty for the only caller.
    pub(crate) caller: String,
    pub(crate) calls: Vec<(String, Model)>,
}

/// A program's surroundings.
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

    /// A run of a relq that executes other statements.
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

    /// Runs the program and returns the promises that a power cut breaks.
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

    /// What a program needs for itself.
    pub(crate) fn site(&self) -> Site {
        Site {
            file: self.file(),
            durability: self.durability,
            replace: Arc::clone(&self.replace),
            disk: Arc::clone(&self.disk),
        }
    }

    /// Begins the recording with the files that the folder has now.
    pub(crate) fn begin_here(&mut self) {
        self.disk = Disk::record(self.folder.path()).unwrap();
    }
}

/// Where a program works.
pub(crate) struct Site {
    pub(crate) file: PathBuf,
    durability: Durability,
    replace: Replace,
    disk: Arc<Disk>,
}

impl Site {
    pub(crate) async fn open(&self) -> SqliteQueue {
        let replace = Arc::clone(&self.replace);
        // Checkpoints happen after a few pages, so that a short program has them.
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

    /// Waits until all connections are closed: the last one removes the log.
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

/// Makes calls one after the other, and notes what it was told.
pub(crate) struct Caller {
    disk: Arc<Disk>,
    number: u64,
    pub(crate) history: History,
}

impl Caller {
    /// Makes a call. `change` says what the store holds after it.
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
