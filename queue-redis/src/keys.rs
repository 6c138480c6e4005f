//! The names of the Redis keys of a queue.

use std::fmt;

use relq_core::QueueName;

/// Builds the names of a queue's keys.
///
/// The key that producers push to has the queue's name. All other keys are
/// `{name}:part`, which Redis Cluster puts in the same slot (R19).
#[derive(Debug, Clone)]
pub struct KeyPrefix(QueueName);

impl KeyPrefix {
    /// A builder for the keys of `queue`.
    pub fn new(queue: QueueName) -> Self {
        Self(queue)
    }

    /// The key that producers push to: the queue's name.
    pub fn producer(&self) -> String {
        self.0.to_string()
    }

    /// The key `{name}:part`.
    pub fn part(&self, part: &str) -> String {
        format!("{{{}}}:{part}", self.0)
    }

    /// The queue's name.
    pub fn queue(&self) -> &QueueName {
        &self.0
    }
}

impl fmt::Display for KeyPrefix {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}
