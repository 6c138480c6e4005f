//! Lists the queues of a file.

use std::{num::NonZeroU32, thread};

use relq_core::{Error, QueueName, error::Operation};
use tokio::sync::oneshot;

use crate::config::{MissingFile, SqliteConfig};
use crate::connection;
use crate::failure::Failure;
use crate::schema;
use crate::statements;

/// The maximum number of queues that one call lists.
const LARGEST_PAGE: u32 = 1000;

/// Returns up to `limit` names of the queues in a file, in the order of their bytes, and
/// at most 1,000. The listing begins behind the name `after`; without it, at the first
/// name. It is over when no name is returned. A queue is in its file from the first call
/// that opened it, also while it is empty.
///
/// A file that does not exist is not created.
///
/// ```
/// use std::num::NonZeroU32;
///
/// use relq_sqlite::{SqliteConfig, SqliteQueue};
/// use relq_core::{Error, QueueName};
///
/// async fn all(config: &SqliteConfig) -> Result<Vec<QueueName>, Error> {
///     let mut names = Vec::new();
///     loop {
///         let limit = NonZeroU32::new(100).expect("not zero");
///         let page = relq_sqlite::queues(config.clone(), names.last(), limit).await?;
///         if page.is_empty() {
///             return Ok(names);
///         }
///         names.extend(page);
///     }
/// }
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// # let folder = tempfile::tempdir()?;
/// let config = SqliteConfig::file(folder.path().join("jobs.db"));
/// SqliteQueue::open(config.clone(), QueueName::new("emails")?).await?;
/// assert_eq!(all(&config).await?, [QueueName::new("emails")?]);
/// # Ok(())
/// # }
/// ```
///
/// # Errors
/// The errors of [`SqliteQueue::open`](crate::SqliteQueue::open). [`Error::Unusable`] for a
/// file that does not exist, and [`Error::Invalid`] for a store in memory, whose only queue
/// is known to its handles alone.
pub async fn queues(
    config: SqliteConfig,
    after: Option<&QueueName>,
    limit: NonZeroU32,
) -> Result<Vec<QueueName>, Error> {
    let after = after.map_or_else(String::new, ToString::to_string);
    let limit = limit.get().min(LARGEST_PAGE);
    on_a_thread(move || list(config, &after, limit))
        .await
        .map_err(|failure| failure.at(Operation::Connect))
}

/// Runs a function that blocks on the file on a thread of its own.
async fn on_a_thread<T: Send + 'static>(
    run: impl FnOnce() -> Result<T, Failure> + Send + 'static,
) -> Result<T, Failure> {
    let (done, answer) = oneshot::channel();
    thread::Builder::new()
        .name("relq-sqlite".to_owned())
        // Ignore a failed send: the caller may have stopped waiting.
        .spawn(move || drop(done.send(run())))
        .map_err(|error| {
            Failure::unavailable(format!("no thread can be started: {error}"))
        })?;
    answer.await.unwrap_or_else(|_| {
        Err(Failure::interrupted("the thread ended before it answered"))
    })
}

fn list(
    config: SqliteConfig,
    after: &str,
    limit: u32,
) -> Result<Vec<QueueName>, Failure> {
    config.check()?;
    let config = config.missing_file(MissingFile::Refuse);
    let Some(file) = connection::resolve(&config.location)? else {
        return Err(Failure::invalid("a store in memory has no list of queues"));
    };
    let mut conn = connection::open(Some(&file), &config)?;
    let transaction = conn.transaction()?;
    schema::check_version(&transaction)?;
    let names = statements::queue_names(&transaction, &config.steps, after, limit)?;
    names.iter().map(|name| read_name(name)).collect()
}

fn read_name(name: &str) -> Result<QueueName, Failure> {
    QueueName::new(name).map_err(|error| {
        Failure::unusable(format!(
            "the file has a queue with a name that relq never writes: {error}"
        ))
    })
}
