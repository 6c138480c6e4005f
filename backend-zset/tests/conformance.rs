//! The rules that every backend keeps, judged on this one.

use std::sync::Arc;

use backend_zset::{ZsetConfig, ZsetQueue};
use conformance_tests::{Subject, async_trait};
use queue_core::{BoxError, Environment, Error, Queue, QueueName};
use queue_redis::testing::Server;

struct ZsetSubject {
    server: Server,
}

#[async_trait]
impl Subject for ZsetSubject {
    async fn start() -> Self {
        Self { server: Server::start() }
    }

    async fn connect(
        &self,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let config = ZsetConfig::new(&self.server.url()).expect("the URL is valid");
        let config = config.environment(environment.clone());
        Ok(Arc::new(ZsetQueue::connect(config, queue.clone()).await?))
    }

    async fn push_raw(
        &self,
        queue: &QueueName,
        payload: &[u8],
    ) -> Result<(), BoxError> {
        let answer =
            self.server.command(&[b"LPUSH", queue.as_str().as_bytes(), payload]);
        if answer.starts_with(b":") {
            return Ok(());
        }
        Err(String::from_utf8_lossy(&answer).into())
    }
}

conformance_tests::conformance!(ZsetSubject, redis);
