//! Configuration of a queue of this backend.

use relq_core::{QueueName, environment::Environment};
use relq_redis::{Owner, pattern::PatternConfig};

pub use relq_redis::{InvalidUrl, RedisConfig};

use crate::capabilities::BACKEND;

/// The lists that hold leased jobs, and the kind of lease. Workers of both modes may
/// use one queue at the same time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Each worker has a list of its own. Its heartbeat is the lease of all jobs in it.
    #[default]
    PerWorker,
    /// All workers share one list, and each job has a lease of its own.
    Shared,
}

/// The Redis server, the mode, and the environment of a queue.
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

    /// Sets the mode: which lists hold leased jobs.
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
        let owner = Owner::new(BACKEND, queue);
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
