//! relq's own backends, as the suite takes them.

use std::sync::Arc;

use conformance_tests::{Subject, async_trait};
use queue_core::{At, Environment, Error, Operation, Queue, QueueName};
use relq::{ConnectError, connect_in};

/// The backend on Redis.
#[derive(Default)]
pub(super) struct Zset;

/// The embedded backend.
#[derive(Default)]
pub(super) struct Sqlite;

#[async_trait]
impl Subject for Zset {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        open("zset", &format!("zset+{endpoint}"), queue, environment).await
    }
}

#[async_trait]
impl Subject for Sqlite {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        // Nobody cuts the power here, so that nothing has to wait for the disk.
        let url = format!("sqlite:{endpoint}/jobs.db?synchronous=normal");
        open("sqlite", &url, queue, environment).await
    }
}

async fn open(
    backend: &'static str,
    url: &str,
    queue: &QueueName,
    environment: &Environment,
) -> Result<Arc<dyn Queue>, Error> {
    match connect_in(environment.clone(), url, queue).await {
        Ok(queue) => Ok(queue),
        Err(ConnectError::Queue(error)) => Err(error),
        Err(other) => {
            let at = At { backend, operation: Operation::Connect };
            Err(Error::Invalid { at, reason: other.to_string() })
        }
    }
}
