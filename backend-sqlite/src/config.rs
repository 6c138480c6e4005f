//! The configuration: where the jobs are stored, and how.

use std::{path::PathBuf, time::Duration};

use relq_core::{
    Priority,
    capabilities::{
        Capabilities, Capability, LeaseScope, Limits, Order, RecoveryBound,
    },
    environment::Environment,
};

use crate::failure::{BACKEND, Failure};
use crate::steps::{AtStep, Replace, Steps};

/// The file of a configuration that does not name one.
const DEFAULT_FILE: &str = "relq.db";
/// How long a call waits while another process writes.
const DEFAULT_BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a waiting claim checks for pushes of other processes: 40 checks a second
/// use too little CPU time to be noticed.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_millis(25);
/// The maximum for both intervals.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Well below SQLite's own limit, and small enough to hold many payloads in memory.
const MAX_PAYLOAD: usize = 64 * 1024 * 1024;

/// Where the jobs are stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In this file. SQLite keeps two more files beside it, `-wal` and `-shm`, which
    /// belong to it.
    File(PathBuf),
    /// In memory, over one connection that all handles of a queue share. The jobs are
    /// gone when the last handle is dropped. For tests.
    Memory,
}

/// Whether a file that does not exist is created.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum MissingFile {
    /// It is created, with its tables.
    #[default]
    Create,
    /// If the file is missing, or is empty and so has no tables, opening the store
    /// fails. This is for programs that only read: with a wrong path they would
    /// otherwise create an empty file and find nothing in it.
    Refuse,
}

/// Which calls survive a power loss. A killed process loses nothing in either mode.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// Every call that returned Ok: each commit waits for the disk
    /// (`synchronous=FULL`, and `fullfsync` for macOS, whose `fsync` does not wait).
    #[default]
    Full,
    /// Everything but the last commits: only checkpoints wait for the disk
    /// (`synchronous=NORMAL` and `checkpoint_fullfsync`). The file is never damaged.
    Normal,
}

/// Where a connection sorts rows that exceed its page cache.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Sorts {
    /// In memory. The calls of workers and producers sort one page at most.
    #[default]
    InMemory,
    /// In a temporary file of SQLite's. An audit sorts all jobs.
    InFile,
}

/// How a queue is opened.
///
/// ```
/// use relq_sqlite::{Durability, SqliteConfig};
///
/// let config = SqliteConfig::file("jobs.db").durability(Durability::Normal);
/// ```
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct SqliteConfig {
    /// Where the jobs are stored; `relq.db` by default.
    pub location: Location,
    /// Whether a file that does not exist is created; it is by default.
    pub missing_file: MissingFile,
    /// Which calls survive a power loss; all by default.
    pub durability: Durability,
    /// How long a call waits while another process writes; 5 s by default.
    pub busy_timeout: Duration,
    /// How often a waiting claim checks for pushes of other processes; 25 ms by
    /// default. A push of this process wakes it at once.
    pub poll_interval: Duration,
    /// The clock, which is the store's clock, and the randomness.
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
    /// Jobs in that file, which is created if it does not exist.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::at(Location::File(path.into()))
    }

    /// Jobs in memory.
    pub fn memory() -> Self {
        Self::at(Location::Memory)
    }

    /// Sets what becomes of a file that does not exist.
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

    /// Sets how long a call waits while another process writes.
    #[must_use]
    pub fn busy_timeout(mut self, busy_timeout: Duration) -> Self {
        self.busy_timeout = busy_timeout;
        self
    }

    /// Sets how often a waiting claim checks for pushes of other processes.
    #[must_use]
    pub fn poll_interval(mut self, poll_interval: Duration) -> Self {
        self.poll_interval = poll_interval;
        self
    }

    /// Sets the clock and the randomness.
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
            supported: &[
                Capability::ClientIds,
                Capability::PushTokens,
                Capability::Delay,
                Capability::Priority,
                Capability::Unique,
                Capability::Expiry,
                Capability::BlockingWait,
                Capability::Batches,
            ],
            priorities: Priority::LOWEST..=Priority::HIGHEST,
            lateness: self.poll_interval,
            order: Order::Fifo,
            lease_scope: LeaseScope::Job,
            recovery: RecoveryBound::LeaseAndReaper,
            limits: Limits { max_payload: MAX_PAYLOAD, ..Limits::DEFAULT },
        }
    }
}

/// Makes a test observe each step of the database thread, and stop or fail it.
#[must_use]
pub fn at_each_step(config: SqliteConfig, watch: AtStep) -> SqliteConfig {
    SqliteConfig { steps: Steps::watched_by(watch), ..config }
}

/// Makes a test replace statements that set up a connection or the schema.
#[must_use]
pub fn with_statements_replaced(
    config: SqliteConfig,
    replace: Replace,
) -> SqliteConfig {
    SqliteConfig { steps: config.steps.clone().replaced_by(replace), ..config }
}
