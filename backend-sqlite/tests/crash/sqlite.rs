//! How the suite opens this backend, and what can go wrong in a file.

use std::{
    collections::BTreeMap,
    fs,
    path::{Path, PathBuf},
    sync::{Arc, LazyLock},
    time::Duration,
};

use backend_sqlite::{Durability, Side as Here, SqliteConfig, SqliteQueue};
use conformance_tests::processes::{Embedded, Refusal, Side, Watch};
use queue_core::{Environment, Error, Queue, QueueName};

/// Result codes of SQLite (`sqlite3.h`).
const BUSY: i32 = 5;
const FULL: i32 = 13;
const IOERR_WRITE: i32 = 778;

/// How long a call waits for a lock that another actor of the suite may hold for good.
const BRIEFLY: Duration = Duration::from_millis(20);

pub(crate) const SQLITE: Embedded = Embedded {
    test: "every_statement_bears_every_fault",
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

/// The names of the statements that there are.
pub(crate) fn statements() -> impl Iterator<Item = &'static String> {
    STATEMENTS.values()
}

pub(crate) async fn open(
    folder: PathBuf,
    queue: QueueName,
    environment: Environment,
    watch: Option<Watch>,
) -> Result<SqliteQueue, Error> {
    // Nobody cuts the power here, and a process that dies takes nothing with it that
    // the system has.
    let config = SqliteConfig::file(folder.join("jobs.db"))
        .durability(Durability::Normal)
        .busy_timeout(BRIEFLY)
        .poll_interval(Duration::from_millis(250))
        .environment(environment);
    let Some(watch) = watch else { return SqliteQueue::open(config, queue).await };
    let watched = config.at_each_step(Arc::new(move |side, sql| match side {
        Here::Before => watch(Side::Before, sql),
        Here::After => watch(Side::After, sql),
    }));
    SqliteQueue::open(watched, queue).await
}

/// The names of the statements' files by their texts.
static STATEMENTS: LazyLock<BTreeMap<String, String>> = LazyLock::new(|| {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("sql");
    let named = |path: &Path| {
        let name = path.file_stem().unwrap().to_string_lossy().into_owned();
        (fs::read_to_string(path).unwrap(), name)
    };
    fs::read_dir(folder).unwrap().map(|file| named(&file.unwrap().path())).collect()
});
