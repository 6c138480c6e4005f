//! This backend, as the suite takes it.

use std::sync::Arc;

use backend_circular::{CircularConfig, CircularQueue};
use conformance_tests::{Subject, async_trait};
use queue_core::{Environment, Error, Queue, QueueName};

#[derive(Default)]
pub(crate) struct Circular;

#[async_trait]
impl Subject for Circular {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let config = CircularConfig::new(endpoint).expect("the suite gives a URL");
        let config = config.environment(environment.clone());
        Ok(Arc::new(CircularQueue::connect(config, queue.clone()).await?))
    }

    fn scripts(&self) -> Vec<String> {
        backend_circular::script_names().map(str::to_owned).collect()
    }
}
