//! The configuration: where the jobs are stored, and how.

use std::{borrow::Cow, path::PathBuf, time::Duration};

use relq_core::{
    Priority,
    capabilities::{
        Capabilities, Capability, LeaseScope, Limits, Order, RecoveryBound,
    },
    environment::Environment,
};

use crate::failure::{BACKEND, Failure};
use crate::steps::{AtStep, Replace, Steps};

/// The file that is opened by default, if the configuration sets no other.
const DEFAULT_FILE: &str = "relq.db";
/// By default, how long a call waits for a lock that another process holds.
const DEFAULT_BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a waiting claim checks for pushes of other processes: 40 checks a second
/// use too little CPU time to be noticed.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_millis(25);
/// The longest busy timeout and the longest poll interval that a configuration accepts.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// The largest payload in bytes: well below SQLite's own limit, and small enough to
/// hold many payloads in memory.
const MAX_PAYLOAD: usize = 64 * 1024 * 1024;

/// Where the jobs are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In this file. SQLite keeps two more files beside it, named with `-wal` and
    /// `-shm` at the end. They are part of the store.
    File(PathBuf),
    /// In memory. Each [`open`](crate::SqliteQueue::open) makes a store of its own. All
    /// handles of its queue, which [`open_another`] opens, share one connection. The
    /// jobs are lost when the last handle is dropped. Intended for tests.
    ///
    /// [`open_another`]: relq_core::ReliableQueue::open_another
    Memory,
}

/// Whether a file that does not exist is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingFile {
    /// The file is created, with its tables.
    #[default]
    Create,
    /// If the file is missing, or has no tables yet, opening the store fails. This is for
    /// programs that only read: with a wrong path they would otherwise create an empty
    /// file and find nothing in it.
    Refuse,
}

/// Which calls survive a power loss. A killed process loses no call in either setting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// A power loss takes back no call that returned Ok: each commit waits for the disk
    /// (`synchronous=FULL`, and `fullfsync` for macOS, whose `fsync` does not wait).
    #[default]
    Full,
    /// A power loss may take back the last calls, but never damages the file: only
    /// checkpoints wait for the disk (`synchronous=NORMAL` and `checkpoint_fullfsync`).
    Normal,
}

/// Where SQLite sorts rows that do not fit into the page cache of a connection.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sorts {
    /// In memory. This is enough for workers and producers, whose calls sort one page
    /// at most.
    #[default]
    InMemory,
    /// In a temporary file that SQLite creates. An audit needs this, because it sorts
    /// all jobs.
    InFile,
}

/// Where a queue is stored, and how it is opened.
///
/// ```
/// use relq_sqlite::{Durability, SqliteConfig};
///
/// let config = SqliteConfig::file("jobs.db").durability(Durability::Normal);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SqliteConfig {
    /// Where the jobs are stored. The default is the file `relq.db`.
    pub location: Location,
    /// Whether to create the file if it does not exist. By default, it is created.
    pub missing_file: MissingFile,
    /// Which calls survive a power loss. By default, all of them do.
    pub durability: Durability,
    /// How long a call waits for a lock that another process holds; 5 s by default.
    pub busy_timeout: Duration,
    /// How often a waiting claim checks for pushes of other processes; 25 ms by
    /// default. A push of this process wakes it at once, unless it is a part of a
    /// transaction of the application.
    pub poll_interval: Duration,
    /// Supplies the clock, from which the store takes the time of every call, and the
    /// source of randomness.
    pub environment: Environment,
    pub(crate) sorts: Sorts,
    pub(crate) steps: Steps,
}

impl Default for SqliteConfig {
    fn default() -> Self {
        Self::at(Location::File(DEFAULT_FILE.into()))
    }
}

impl SqliteConfig {
    /// Stores jobs in the file at `path`, which is created if it does not exist.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::at(Location::File(path.into()))
    }

    /// Stores jobs in memory, until the last handle of the queue is dropped.
    pub fn memory() -> Self {
        Self::at(Location::Memory)
    }

    /// Sets whether a file that does not exist is created.
    ///
    /// ```
    /// use relq_sqlite::{MissingFile, SqliteConfig, SqliteQueue};
    /// use relq_core::{Error, QueueName};
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
    /// let config = SqliteConfig::file("no-such-file.db");
    /// let config = config.missing_file(MissingFile::Refuse);
    /// let opened = SqliteQueue::open(config, QueueName::new("emails")?).await;
    /// assert!(matches!(opened, Err(Error::Unusable { .. })));
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn missing_file(mut self, missing_file: MissingFile) -> Self {
        self.missing_file = missing_file;
        self
    }

    /// Sets which calls survive a power loss.
    #[must_use]
    pub fn durability(mut self, durability: Durability) -> Self {
        self.durability = durability;
        self
    }

    /// Sets how long a call waits for a lock that another process holds, at most an hour.
    #[must_use]
    pub fn busy_timeout(mut self, busy_timeout: Duration) -> Self {
        self.busy_timeout = busy_timeout;
        self
    }

    /// Sets how often a waiting claim checks for pushes of other processes: from a
    /// millisecond to an hour.
    #[must_use]
    pub fn poll_interval(mut self, poll_interval: Duration) -> Self {
        self.poll_interval = poll_interval;
        self
    }

    /// Sets the clock and the source of randomness.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    fn at(location: Location) -> Self {
        Self {
            location,
            missing_file: MissingFile::default(),
            durability: Durability::default(),
            busy_timeout: DEFAULT_BUSY_TIMEOUT,
            poll_interval: DEFAULT_POLL_INTERVAL,
            environment: Environment::default(),
            sorts: Sorts::default(),
            steps: Steps::default(),
        }
    }

    pub(crate) fn check(&self) -> Result<(), Failure> {
        if self.location == Location::File(PathBuf::new()) {
            return Err(Failure::invalid("the path of the file must not be empty"));
        }
        if self.busy_timeout > LONGEST_INTERVAL {
            return Err(Failure::invalid("the busy timeout is longer than an hour"));
        }
        let shortest = Duration::from_millis(1);
        if !(shortest..=LONGEST_INTERVAL).contains(&self.poll_interval) {
            return Err(Failure::invalid(
                "the poll interval must be from 1 ms to an hour",
            ));
        }
        Ok(())
    }

    pub(crate) fn capabilities(&self) -> Capabilities {
        Capabilities {
            backend: BACKEND,
            supported: Cow::Borrowed(&[
                Capability::ClientIds,
                Capability::PushTokens,
                Capability::Delay,
                Capability::Priority,
                Capability::Unique,
                Capability::Expiry,
                Capability::BlockingWait,
                Capability::ReadyAge,
                Capability::Batches,
                Capability::Schedules,
                Capability::Results,
                Capability::Followers,
                Capability::Inspect,
                Capability::Restore,
            ]),
            priorities: Priority::LOWEST..=Priority::HIGHEST,
            lateness: self.poll_interval,
            order: Order::Fifo,
            lease_scope: LeaseScope::Job,
            recovery: RecoveryBound::LeaseAndReaper,
            limits: Limits { max_payload: MAX_PAYLOAD, ..Limits::DEFAULT },
        }
    }
}

/// Adds a hook for a test. The hook observes each step of the database thread, and can
/// block the step or make it fail.
#[must_use]
pub fn at_each_step(config: SqliteConfig, watch: AtStep) -> SqliteConfig {
    SqliteConfig { steps: Steps::watched_by(watch), ..config }
}

/// Adds a hook for a test. The hook can replace statements.
#[must_use]
pub fn with_statements_replaced(
    config: SqliteConfig,
    replace: Replace,
) -> SqliteConfig {
    SqliteConfig { steps: config.steps.clone().replaced_by(replace), ..config }
}
