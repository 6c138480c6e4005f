//! Names of keys.

use std::fmt;

use relq_core::QueueName;

/// Builds the names of a queue's keys.
///
/// The producer's key is the queue's name itself; all others are `{name}:part`,
/// which Redis Cluster puts in the same slot (R19).
#[derive(Debug, Clone)]
pub struct KeyPrefix(QueueName);

impl KeyPrefix {
    /// The keys of the queue of that name.
    pub fn new(queue: QueueName) -> Self {
        Self(queue)
    }

    /// The producer's key.
    pub fn producer(&self) -> String {
        self.0.to_string()
    }

    /// Another key of the queue.
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
