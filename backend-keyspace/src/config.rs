//! Configuration of a queue of this backend.

use relq_core::{QueueName, environment::Environment};
use relq_redis::{Owner, pattern::PatternConfig};

pub use relq_redis::{InvalidUrl, RedisConfig};

use crate::{
    capabilities::CAPABILITIES,
    database,
    keys::{DATABASE, Keys},
};

/// The configuration of a queue: the server's address, the clock and the source of
/// randomness, and whether foreign keys are tolerated. It can be made of a
/// [`RedisConfig`], which has the time limits of calls.
///
/// ```no_run
/// use relq_core::{NewJob, QueueName, ReliableQueueExt};
/// use relq_keyspace::{KeyspaceConfig, KeyspaceQueue};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // Database 3 holds nothing but this queue.
/// let config = KeyspaceConfig::new("redis://127.0.0.1/3")?;
/// let queue = KeyspaceQueue::connect(config, QueueName::new("emails")?).await?;
/// queue.push_one(NewJob::new("anna")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct KeyspaceConfig {
    pub(crate) redis: RedisConfig,
    pub(crate) foreign_keys: ForeignKeys,
}

/// How opening a queue treats a database that holds foreign keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ForeignKeys {
    Refused,
    Tolerated,
}

impl KeyspaceConfig {
    /// Configures a queue on the database at `url`: see [`RedisConfig::new`]. The queue
    /// needs a database of its own.
    ///
    /// # Errors
    /// When the URL does not name a Redis server.
    pub fn new(url: &str) -> Result<Self, InvalidUrl> {
        RedisConfig::new(url).map(Self::from)
    }

    /// Sets the clock and the source of randomness that the queue uses.
    #[must_use]
    pub fn environment(self, environment: Environment) -> Self {
        Self { redis: self.redis.environment(environment), ..self }
    }

    /// Accepts a database that also holds keys of other programs. By default such a
    /// database is refused. The queue never touches foreign keys, but each of them
    /// makes ready jobs harder to find: the README states the cost.
    #[must_use]
    pub fn tolerate_foreign_keys(self) -> Self {
        Self { foreign_keys: ForeignKeys::Tolerated, ..self }
    }
}

impl PatternConfig for KeyspaceConfig {
    fn owner(self, queue: QueueName) -> (RedisConfig, Owner) {
        let look = database::first_page(&Keys::new(queue.clone()));
        let owner = Owner::new(CAPABILITIES.backend, queue).database(DATABASE);
        let owner = match self.foreign_keys {
            ForeignKeys::Refused => owner.first_look(look),
            ForeignKeys::Tolerated => owner,
        };
        (self.redis, owner)
    }
}

impl From<RedisConfig> for KeyspaceConfig {
    fn from(redis: RedisConfig) -> Self {
        Self { redis, foreign_keys: ForeignKeys::Refused }
    }
}
