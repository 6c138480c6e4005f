//! This backend, as the suite takes it.

use std::sync::{
    Arc,
    atomic::{AtomicU64, Ordering},
};

use backend_keyspace::{KeyspaceConfig, KeyspaceQueue};
use conformance_tests::{Room, Subject, async_trait};
use queue_core::{Environment, Error, Queue, QueueName};

#[derive(Default)]
pub(crate) struct Keyspace {
    plain_pushes: AtomicU64,
}

#[async_trait]
impl Subject for Keyspace {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let config = KeyspaceConfig::new(endpoint).expect("the suite gives a URL");
        let config = config.environment(environment.clone());
        Ok(Arc::new(KeyspaceQueue::connect(config, queue.clone()).await?))
    }

    fn plain_push(&self, _queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        let number = self.plain_pushes.fetch_add(1, Ordering::Relaxed);
        vec![b"SET".to_vec(), format!("item_{number}").into(), payload.to_vec()]
    }

    fn plain_pushes_wake(&self) -> bool {
        false
    }

    fn room(&self) -> Room {
        Room::OneQueue
    }

    fn owns(&self, queue: &QueueName, key: &[u8]) -> bool {
        let own = ["item_", "processing_", "relq:database", &format!("{{{queue}}}:")];
        own.iter().any(|prefix| key.starts_with(prefix.as_bytes()))
    }

    fn scripts(&self) -> Vec<String> {
        backend_keyspace::script_names().map(str::to_owned).collect()
    }
}
