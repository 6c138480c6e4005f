//! The queues of the store, as the page asks for them.

use std::sync::Arc;

use async_trait::async_trait;
use relq::{ConnectError, Queue, QueueName, error::BoxError};
use relq_web::QueueSource;

use crate::source::StoreSource;

#[async_trait]
impl QueueSource for StoreSource {
    async fn names(&self) -> Result<Vec<QueueName>, BoxError> {
        Self::names(self).await.map_err(cause)
    }

    async fn open(&self, name: &QueueName) -> Result<Option<Arc<dyn Queue>>, BoxError> {
        self.open_queue(name).await.map_err(cause)
    }
}

/// The error of the store, which the page can tell apart, if it is one.
fn cause(error: ConnectError) -> BoxError {
    match error {
        ConnectError::Queue(error) => error.into(),
        error => error.into(),
    }
}
