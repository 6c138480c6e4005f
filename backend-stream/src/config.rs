//! Configuration of a queue of this backend.

use relq_core::{QueueName, environment::Environment};
use relq_redis::{Owner, Partition, pattern::PatternConfig};

pub use relq_redis::{InvalidUrl, RedisConfig};

use crate::capabilities::CAPABILITIES;

/// The configuration of a queue: the server's address, the clock and the source of
/// randomness. It can be made of a [`RedisConfig`], which has the time limits of calls.
///
/// ```no_run
/// use relq_core::{NewJob, QueueName, ReliableQueueExt};
/// use relq_stream::{StreamConfig, StreamQueue};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = StreamConfig::new("redis://127.0.0.1/0")?;
/// let queue = StreamQueue::connect(config, QueueName::new("emails")?).await?;
/// queue.push_one(NewJob::new("anna")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct StreamConfig {
    pub(crate) redis: RedisConfig,
}

impl StreamConfig {
    /// Configures a queue on the server at `url`: see [`RedisConfig::new`].
    ///
    /// # Errors
    /// When the URL does not name a Redis server.
    pub fn new(url: &str) -> Result<Self, InvalidUrl> {
        RedisConfig::new(url).map(Self::from)
    }

    /// Sets the clock and the source of randomness that the queue uses.
    #[must_use]
    pub fn environment(self, environment: Environment) -> Self {
        self.redis.environment(environment).into()
    }

    /// Says which part of a queue of several parts is opened.
    #[must_use]
    pub fn partition(self, partition: Partition) -> Self {
        self.redis.partition(partition).into()
    }
}

impl PatternConfig for StreamConfig {
    fn owner(self, queue: QueueName) -> (RedisConfig, Owner) {
        let partition = self.redis.opened_partition();
        let owner = Owner::new(CAPABILITIES.backend, queue).partition(partition);
        (self.redis, owner)
    }
}

impl From<RedisConfig> for StreamConfig {
    fn from(redis: RedisConfig) -> Self {
        Self { redis }
    }
}
