//! How a queue of this backend is set up.

use relq_core::{Environment, QueueName};
use relq_redis::{Owner, pattern::PatternConfig};

pub use relq_redis::{InvalidUrl, RedisConfig};

use crate::{keys::DATABASE, pattern::CAPABILITIES};

/// Where the server is, and what the queue runs on.
#[derive(Debug, Clone)]
pub struct KeyspaceConfig {
    pub(crate) redis: RedisConfig,
    pub(crate) foreign_keys: ForeignKeys,
}

/// What becomes of a database with keys that are none of the queue's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignKeys {
    Refused,
    Tolerated,
}

impl KeyspaceConfig {
    /// The database at `url`: see [`RedisConfig::new`]. It is all the queue's own.
    ///
    /// # Errors
    /// When the URL does not name a Redis server.
    pub fn new(url: &str) -> Result<Self, InvalidUrl> {
        RedisConfig::new(url).map(Self::from)
    }

    /// Sets the time and randomness to run on.
    #[must_use]
    pub fn environment(self, environment: Environment) -> Self {
        Self { redis: self.redis.environment(environment), ..self }
    }

    /// Works in a database that has keys of others in it too, which is refused unless
    /// this is said. They are never touched, but each makes it harder to find the
    /// ready jobs among them: see the README for the cost.
    #[must_use]
    pub fn tolerate_foreign_keys(self) -> Self {
        Self { foreign_keys: ForeignKeys::Tolerated, ..self }
    }
}

impl PatternConfig for KeyspaceConfig {
    fn owner(self, queue: QueueName) -> (RedisConfig, Owner) {
        let owner = Owner::new(CAPABILITIES.backend, queue).database(DATABASE);
        (self.redis, owner)
    }
}

impl From<RedisConfig> for KeyspaceConfig {
    fn from(redis: RedisConfig) -> Self {
        Self { redis, foreign_keys: ForeignKeys::Refused }
    }
}
