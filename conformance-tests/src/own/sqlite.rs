//! The setup of the SQLite backend for tests that kill processes: how to open a queue,
//! and which errors a database file can cause.

use std::{
    collections::BTreeMap,
    fs,
    ops::Bound::{Included, Unbounded},
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::Duration,
};

use relq::sqlite::{
    Durability, SqliteConfig, SqliteQueue,
    testing::{Contents, Side as Here, at_each_step, result},
};
use relq_core::{Error, Queue, QueueName, environment::Environment};

use crate::{
    explore::{Bound, Digest, Transactions},
    sweep::processes::{Child, Embedded, Refusal, Side, Watch},
};

/// Result codes of SQLite (from `sqlite3.h`) with which the suite makes statements
/// fail.
const BUSY: i32 = 5;
const FULL: i32 = 13;
const IOERR_WRITE: i32 = 778;

/// The name of the database file in a case's folder.
const FILE: &str = "jobs.db";

/// How long a call waits for a lock of the database file. An actor that the suite
/// stopped may never release that lock.
const BRIEFLY: Duration = Duration::from_millis(20);

/// The arguments with which the program `conformance` runs as a child process.
pub const CHILD: &[&str] = &["sqlite-child"];

/// The SQLite backend, with the program `conformance` as its child process.
pub const SQLITE: Embedded = Embedded {
    child: Child::Program(CHILD),
    open: |folder, queue, environment, watch| {
        Box::pin(async move {
            let queue = open(folder, queue, environment, watch).await?;
            Ok(Arc::new(queue) as Arc<dyn Queue>)
        })
    },
    label: |sql| name_of(sql).unwrap_or(sql).to_owned(),
    only_reads: |sql| {
        let first = sql.lines().find(|line| !line.starts_with("--"));
        first.is_some_and(|line| line.starts_with("SELECT"))
    },
    refusals: &[
        Refusal {
            name: "full disk",
            code: FULL,
            is_told: |error| matches!(error, Error::Full { .. }),
        },
        Refusal {
            name: "failing disk",
            code: IOERR_WRITE,
            is_told: |error| {
                matches!(error, Error::Unavailable { .. } | Error::Interrupted { .. })
            },
        },
        Refusal {
            name: "locked",
            code: BUSY,
            is_told: |error| matches!(error, Error::Unavailable { .. }),
        },
    ],
    chosen: |_| true,
    transactions: Transactions { bound, result, digest },
};

/// Returns the names of all SQL statements of the backend. The check COVERAGE fails if
/// none of the tested calls executes one of them.
pub fn statements() -> impl Iterator<Item = &'static String> {
    STATEMENTS.values()
}

/// Returns how many rows the tables of the file `jobs.db` in a folder have.
///
/// # Panics
/// When the file does not exist or cannot be read.
pub fn records(folder: &str) -> u64 {
    let contents = Contents::open(&Path::new(folder).join(FILE));
    contents.expect("the file opens").rows().expect("the rows can be counted")
}

/// Opens a queue in the file `jobs.db` of a folder.
///
/// # Errors
/// The errors of [`SqliteQueue::open`].
pub async fn open(
    folder: PathBuf,
    queue: QueueName,
    environment: Environment,
    watch: Option<Watch>,
) -> Result<SqliteQueue, Error> {
    // Power cuts are not tested here. A killed process loses no data that it has passed
    // to the operating system.
    let config = SqliteConfig::file(folder.join(FILE))
        .durability(Durability::Normal)
        .busy_timeout(BRIEFLY)
        .poll_interval(Duration::from_millis(250))
        .environment(environment);
    let Some(watch) = watch else { return SqliteQueue::open(config, queue).await };
    let watch = Arc::new(move |side, sql: &str| match side {
        Here::Before => watch(Side::Before, sql),
        Here::After => watch(Side::After, sql),
    });
    let watched = at_each_step(config, watch);
    SqliteQueue::open(watched, queue).await
}

/// Returns whether a statement begins or ends a transaction, or `None` if it does
/// neither.
fn bound(sql: &str) -> Option<Bound> {
    match sql {
        "BEGIN" => Some(Bound::BeginsToRead),
        "BEGIN IMMEDIATE" => Some(Bound::BeginsToWrite),
        "COMMIT" | "ROLLBACK" => Some(Bound::Ends),
        _ => None,
    }
}

fn digest(folder: &Path) -> Result<Digest, String> {
    let failed = |error| format!("the digest: {error}");
    let contents = Contents::open(&folder.join(FILE)).map_err(failed)?;
    Ok(Box::new(move || contents.digest().map_err(failed)))
}

/// Returns the name of a SQL statement, which is that of its source file. `None` if the
/// sources are not available: then reports show the statement's text.
fn name_of(sql: &str) -> Option<&'static str> {
    let (beginning, name) =
        STATEMENTS.range::<str, _>((Unbounded, Included(sql))).next_back()?;
    sql.starts_with(beginning).then_some(name)
}

/// The name of each SQL statement by the beginning of its text: the part before
/// `/*each*/`, behind which a statement for several rows continues differently.
static STATEMENTS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../backend-sqlite/sql");
    let Ok(files) = fs::read_dir(folder) else { return BTreeMap::new() };
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let named = |path: PathBuf| {
        let name = path.file_stem()?.to_string_lossy().into_owned();
        let text = fs::read_to_string(&path).ok()?;
        let beginning = text.split("/*each*/").next()?;
        Some((beginning.to_owned(), name))
    };
    paths.filter_map(named).collect()
});
