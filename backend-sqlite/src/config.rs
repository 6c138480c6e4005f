//! Where the jobs are kept, and how.

use std::{path::PathBuf, time::Duration};

use relq_core::{
    Capabilities, Capability, Environment, LeaseScope, Limits, Order, Priority,
    RecoveryBound,
};

use crate::failure::Failure;
use crate::steps::{AtStep, Steps};

/// The backend's name, as in its URL.
pub(crate) const BACKEND: &str = "sqlite";

/// The file of a configuration that does not name one.
const DEFAULT_FILE: &str = "relq.db";
/// How long a call waits while another process writes.
const DEFAULT_BUSY_TIMEOUT: Duration = Duration::from_secs(5);
/// How often a waiting claim looks for the pushes of other processes: 40 looks a
/// second, which are too few to be seen in a list of processes.
const DEFAULT_POLL_INTERVAL: Duration = Duration::from_millis(25);
/// Neither interval makes sense beyond that.
const LONGEST_INTERVAL: Duration = Duration::from_secs(60 * 60);

/// Well under what SQLite takes, and small enough to be held in memory many times.
const MAX_PAYLOAD: usize = 64 * 1024 * 1024;

/// Where the jobs are.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Location {
    /// In this file. Beside it SQLite keeps two more, `-wal` and `-shm`, which
    /// belong to it.
    File(PathBuf),
    /// In memory, over one connection that all handles of a queue share; gone with
    /// the last of them. For tests.
    Memory,
}

/// What survives a loss of power. A killed process loses nothing either way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Durability {
    /// All that was answered Ok: each commit waits for the disk
    /// (`synchronous=FULL`).
    #[default]
    Full,
    /// All but the last moments: the disk is waited for at checkpoints only
    /// (`synchronous=NORMAL`). The file stays whole.
    Normal,
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
    /// Where the jobs are; `relq.db` by default.
    pub location: Location,
    /// What survives a loss of power; everything by default.
    pub durability: Durability,
    /// How long a call waits while another process writes; 5 s by default.
    pub busy_timeout: Duration,
    /// How often a waiting claim looks for what other processes pushed; 25 ms by
    /// default. Pushes of this process wake it at once.
    pub poll_interval: Duration,
    /// The clock, which is the store's clock, and the randomness.
    pub environment: Environment,
    pub(crate) steps: Steps,
}

impl Default for SqliteConfig {
    fn default() -> Self {
        Self::at(Location::File(DEFAULT_FILE.into()))
    }
}

impl SqliteConfig {
    /// Jobs in that file, which is made if it does not exist.
    pub fn file(path: impl Into<PathBuf>) -> Self {
        Self::at(Location::File(path.into()))
    }

    /// Jobs in memory.
    pub fn memory() -> Self {
        Self::at(Location::Memory)
    }

    /// Sets what survives a loss of power.
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

    /// Sets how often a waiting claim looks for what other processes pushed.
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
            durability: Durability::default(),
            busy_timeout: DEFAULT_BUSY_TIMEOUT,
            poll_interval: DEFAULT_POLL_INTERVAL,
            environment: Environment::default(),
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

/// Has a test look at each step of the database thread, and stop or fail it.
#[must_use]
pub fn at_each_step(config: SqliteConfig, watch: AtStep) -> SqliteConfig {
    SqliteConfig { steps: Steps::watched_by(watch), ..config }
}
