//! How a queue of this backend is set up.

use relq_core::{Environment, QueueName};
use relq_redis::{Owner, pattern::PatternConfig};

pub use relq_redis::{InvalidUrl, RedisConfig};

use crate::pattern::CAPABILITIES;

/// How a job that is done leaves the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum FinishBy {
    /// Its lease is marked, and the ring drops the element when it comes round: a
    /// step that costs the same whatever the ring's length, and sends a token only.
    #[default]
    Mark,
    /// `LREM`, from the end where leased elements are: no memory is held by what is
    /// done, at the cost of a search past all that was pushed or leased since, and of
    /// sending the whole element.
    Lrem,
}

/// Where the server is, and what the queue runs on.
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

    /// Sets how a job that is done leaves the ring. Clients of one queue may differ.
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
