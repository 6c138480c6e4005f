//! The queues that the page shows.

use std::{collections::BTreeMap, fmt::Debug, sync::Arc};

use async_trait::async_trait;
use relq_core::{Queue, QueueName, error::BoxError};

/// Lists the queues that the page shows, and opens them.
#[async_trait]
pub trait QueueSource: Debug + Send + Sync {
    /// The names of the queues, in order. The page asks every few seconds, so a source
    /// whose listing is expensive keeps the names for some time.
    ///
    /// # Errors
    /// Any error; the page shows its text and that of its causes.
    async fn names(&self) -> Result<Vec<QueueName>, BoxError>;

    /// The queue of this name; `None` if there is none. The source keeps the handles that
    /// it has opened.
    ///
    /// # Errors
    /// Any error; the page shows its text and that of its causes.
    async fn open(&self, name: &QueueName) -> Result<Option<Arc<dyn Queue>>, BoxError>;
}

/// The queues that an application has opened.
#[derive(Debug, Clone)]
pub struct FixedQueues(BTreeMap<QueueName, Arc<dyn Queue>>);

impl FixedQueues {
    /// Shows these queues.
    pub fn new(queues: impl IntoIterator<Item = (QueueName, Arc<dyn Queue>)>) -> Self {
        Self(queues.into_iter().collect())
    }
}

#[async_trait]
impl QueueSource for FixedQueues {
    async fn names(&self) -> Result<Vec<QueueName>, BoxError> {
        Ok(self.0.keys().cloned().collect())
    }

    async fn open(&self, name: &QueueName) -> Result<Option<Arc<dyn Queue>>, BoxError> {
        Ok(self.0.get(name).cloned())
    }
}
