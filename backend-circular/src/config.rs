//! The configuration of a queue of this backend.

use relq_core::{QueueName, environment::Environment};
use relq_redis::{Owner, Partition, pattern::PatternConfig};

pub use relq_redis::{InvalidUrl, RedisConfig};

use crate::capabilities::CAPABILITIES;

/// How a finished job leaves the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FinishBy {
    /// The client marks the job's lease as ended, and a later rotation of the ring
    /// drops the element. This takes the same time however long the ring is, and the
    /// client sends only the lease's token.
    #[default]
    Mark,
    /// The client removes the element with `LREM`, which searches from the end where
    /// leased elements are. Finished jobs then use no memory. But the search passes all
    /// elements that were pushed or leased since, and the client sends the whole
    /// element.
    Lrem,
}

/// The configuration of a queue: the server's address, the clock and the source of
/// randomness, and how finished jobs leave the ring. It can be made of a
/// [`RedisConfig`], which has the time limits of calls.
///
/// ```no_run
/// use relq_core::{NewJob, QueueName, ReliableQueueExt};
/// use relq_circular::{CircularConfig, CircularQueue, FinishBy};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = CircularConfig::new("redis://127.0.0.1/0")?.finish(FinishBy::Lrem);
/// let queue = CircularQueue::connect(config, QueueName::new("emails")?).await?;
/// queue.push_one(NewJob::new("anna")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct CircularConfig {
    pub(crate) redis: RedisConfig,
    pub(crate) finish: FinishBy,
}

impl CircularConfig {
    /// The server at `url`: see [`RedisConfig::new`].
    ///
    /// # Errors
    /// When the URL does not name a Redis server.
    pub fn new(url: &str) -> Result<Self, InvalidUrl> {
        RedisConfig::new(url).map(Self::from)
    }

    /// Sets how a finished job leaves the ring. Clients of one queue may use different
    /// ways.
    #[must_use]
    pub fn finish(mut self, finish: FinishBy) -> Self {
        self.finish = finish;
        self
    }

    /// Sets the clock and the source of randomness that the queue uses.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.redis = self.redis.environment(environment);
        self
    }

    /// Says which part of a queue of several parts is opened.
    #[must_use]
    pub fn partition(mut self, partition: Partition) -> Self {
        self.redis = self.redis.partition(partition);
        self
    }
}

impl PatternConfig for CircularConfig {
    fn owner(self, queue: QueueName) -> (RedisConfig, Owner) {
        let partition = self.redis.opened_partition();
        let owner = Owner::new(CAPABILITIES.backend, queue).partition(partition);
        let owner = match self.finish {
            FinishBy::Mark => owner,
            FinishBy::Lrem => owner.option("finish=lrem"),
        };
        (self.redis, owner)
    }
}

impl From<RedisConfig> for CircularConfig {
    fn from(redis: RedisConfig) -> Self {
        Self { redis, finish: FinishBy::default() }
    }
}
