//! The setup of relq's embedded backend for tests that kill processes: how to open it,
//! and which errors a file can cause.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::Duration,
};

use relq::sqlite::{
    Durability, SqliteConfig, SqliteQueue,
    testing::{Side as Here, at_each_step},
};
use relq_core::{Error, Queue, QueueName, environment::Environment};

use crate::sweep::processes::{Child, Embedded, Refusal, Side, Watch};

/// Result codes of SQLite (`sqlite3.h`).
const BUSY: i32 = 5;
const FULL: i32 = 13;
const IOERR_WRITE: i32 = 778;

/// How long a call waits for a lock that another actor of the suite may never release.
const BRIEFLY: Duration = Duration::from_millis(20);

/// The arguments with which the program `conformance` becomes a child.
pub const CHILD: &[&str] = &["sqlite-child"];

/// SQLite, with the program `conformance` as the child.
pub const SQLITE: Embedded = Embedded {
    child: Child::Program(CHILD),
    open: |folder, queue, environment, watch| {
        Box::pin(async move {
            let queue = open(folder, queue, environment, watch).await?;
            Ok(Arc::new(queue) as Arc<dyn Queue>)
        })
    },
    label: |sql| STATEMENTS.get(sql).map_or(sql, |name| name).to_owned(),
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
};

/// The names of all statements, which COVERAGE checks.
pub fn statements() -> impl Iterator<Item = &'static String> {
    STATEMENTS.values()
}

/// Opens a queue in a folder.
///
/// # Errors
/// As for [`SqliteQueue::open`].
pub async fn open(
    folder: PathBuf,
    queue: QueueName,
    environment: Environment,
    watch: Option<Watch>,
) -> Result<SqliteQueue, Error> {
    // No test here cuts the power, and data that a killed process has passed to the
    // operating system is kept.
    let config = SqliteConfig::file(folder.join("jobs.db"))
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

/// The file names of the statements, by their texts. It is empty if the sources are not
/// available, and a statement is then named by its text.
static STATEMENTS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../backend-sqlite/sql");
    let Ok(files) = fs::read_dir(folder) else { return BTreeMap::new() };
    let paths = files.filter_map(|file| Some(file.ok()?.path()));
    let named = |path: PathBuf| {
        let name = path.file_stem()?.to_string_lossy().into_owned();
        Some((fs::read_to_string(&path).ok()?, name))
    };
    paths.filter_map(named).collect()
});
