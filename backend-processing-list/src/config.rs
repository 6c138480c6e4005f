//! Configuration of a queue of this backend.

use relq_core::{QueueName, environment::Environment};
use relq_redis::{Owner, Partition, pattern::PatternConfig};

pub use relq_redis::{InvalidUrl, RedisConfig};

use crate::capabilities::BACKEND;

/// Which list holds a leased job. Workers of both modes may use one queue at the same
/// time.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// Each worker has a list of its own, and all of its jobs have leases of one
    /// length.
    #[default]
    PerWorker,
    /// All workers share one list, and a job may have a lease length of its own.
    Shared,
}

/// The Redis server, the mode, and the environment of a queue. It can be made of a
/// [`RedisConfig`], which has the time limits of calls.
///
/// ```no_run
/// use relq_core::{NewJob, QueueName, ReliableQueueExt};
/// use relq_processing_list::{Mode, ProcessingListConfig, ProcessingListQueue};
///
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let config = ProcessingListConfig::new("redis://127.0.0.1/0")?.mode(Mode::Shared);
/// let queue = ProcessingListQueue::connect(config, QueueName::new("emails")?).await?;
/// queue.push_one(NewJob::new("anna")).await?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct ProcessingListConfig {
    pub(crate) redis: RedisConfig,
    pub(crate) mode: Mode,
}

impl ProcessingListConfig {
    /// A configuration for the server at `url`, in the default mode.
    /// [`RedisConfig::new`] describes the URL.
    ///
    /// # Errors
    /// When the URL does not name a Redis server.
    pub fn new(url: &str) -> Result<Self, InvalidUrl> {
        RedisConfig::new(url).map(Self::from)
    }

    /// Sets the mode: whether each worker has a list of its own, or all share one.
    #[must_use]
    pub fn mode(self, mode: Mode) -> Self {
        Self { mode, ..self }
    }

    /// Sets the clock and the random source that the queue uses.
    #[must_use]
    pub fn environment(self, environment: Environment) -> Self {
        Self { redis: self.redis.environment(environment), ..self }
    }

    /// Says which part of a queue of several parts is opened.
    #[must_use]
    pub fn partition(self, partition: Partition) -> Self {
        Self { redis: self.redis.partition(partition), ..self }
    }
}

impl PatternConfig for ProcessingListConfig {
    fn owner(self, queue: QueueName) -> (RedisConfig, Owner) {
        let partition = self.redis.opened_partition();
        let owner = Owner::new(BACKEND, queue).partition(partition);
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
