//! How a queue of this backend is set up.

use relq_core::{Environment, QueueName};
use relq_redis::{Owner, pattern::PatternConfig};

pub use relq_redis::{InvalidUrl, RedisConfig};

use crate::queue::PER_WORKER;

/// Where a worker's jobs are, and what its leases are bound to. Both modes may be used
/// on one queue at once.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Each worker has a list of its own, and its heartbeat is the lease of all that is
    /// in it.
    #[default]
    PerWorker,
    /// All workers share one list, and each job has a lease of its own.
    Shared,
}

/// Where the server is, how jobs are kept there, and what the queue runs on.
#[derive(Debug, Clone)]
pub struct ProcessingListConfig {
    pub(crate) redis: RedisConfig,
    pub(crate) mode: Mode,
}

impl ProcessingListConfig {
    /// The server at `url`: see [`RedisConfig::new`].
    ///
    /// # Errors
    /// When the URL does not name a Redis server.
    pub fn new(url: &str) -> Result<Self, InvalidUrl> {
        RedisConfig::new(url).map(Self::from)
    }

    /// Sets where a worker's jobs are.
    #[must_use]
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Sets the time and randomness to run on.
    #[must_use]
    pub fn environment(self, environment: Environment) -> Self {
        Self { redis: self.redis.environment(environment), ..self }
    }
}

impl PatternConfig for ProcessingListConfig {
    fn owner(self, queue: QueueName) -> (RedisConfig, Owner) {
        let owner = Owner::new(PER_WORKER.backend, queue);
        let owner = match self.mode {
            Mode::PerWorker => owner,
            Mode::Shared => owner.option("mode=shared"),
        };
        (self.redis, owner)
    }
}

impl From<RedisConfig> for ProcessingListConfig {
    fn from(redis: RedisConfig) -> Self {
        Self { redis, mode: Mode::default() }
    }
}
