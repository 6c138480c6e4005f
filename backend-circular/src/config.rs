//! The configuration of a queue of this backend.

use relq_core::{QueueName, environment::Environment};
use relq_redis::{Owner, pattern::PatternConfig};

pub use relq_redis::{InvalidUrl, RedisConfig};

use crate::capabilities::CAPABILITIES;

/// How a finished job leaves the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FinishBy {
    /// The job's lease is marked, and the ring drops the element when a rotation meets
    /// it. This takes the same time whatever the ring's length, and sends only a token.
    #[default]
    Mark,
    /// `LREM`, from the end where leased elements are. Finished jobs use no memory. The
    /// price is a search past all elements that were pushed or leased since, and
    /// sending the whole element.
    Lrem,
}

/// Where the server is, and which clock and randomness the queue uses.
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

    /// Sets the time and randomness to run on.
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.redis = self.redis.environment(environment);
        self
    }
}

impl PatternConfig for CircularConfig {
    fn owner(self, queue: QueueName) -> (RedisConfig, Owner) {
        let owner = Owner::new(CAPABILITIES.backend, queue);
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
