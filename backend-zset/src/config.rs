//! The configuration of a queue of this backend.

use relq_core::{QueueName, environment::Environment};
use relq_redis::{Owner, pattern::PatternConfig};

pub use relq_redis::{InvalidUrl, RedisConfig};

use crate::capabilities::CAPABILITIES;

/// Where the server is, and which clock and randomness the queue uses.
#[derive(Debug, Clone)]
pub struct ZsetConfig {
    pub(crate) redis: RedisConfig,
}

impl ZsetConfig {
    /// The server at `url`: see [`RedisConfig::new`].
    ///
    /// # Errors
    /// When the URL does not name a Redis server.
    pub fn new(url: &str) -> Result<Self, InvalidUrl> {
        RedisConfig::new(url).map(Self::from)
    }

    /// Sets the time and randomness to run on.
    #[must_use]
    pub fn environment(self, environment: Environment) -> Self {
        self.redis.environment(environment).into()
    }
}

impl PatternConfig for ZsetConfig {
    fn owner(self, queue: QueueName) -> (RedisConfig, Owner) {
        (self.redis, Owner::new(CAPABILITIES.backend, queue))
    }
}

impl From<RedisConfig> for ZsetConfig {
    fn from(redis: RedisConfig) -> Self {
        Self { redis }
    }
}
