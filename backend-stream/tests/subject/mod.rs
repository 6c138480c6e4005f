//! This backend, as the suite takes it.

use std::sync::Arc;

use backend_stream::{StreamConfig, StreamQueue};
use conformance_tests::{Subject, async_trait};
use queue_core::{Environment, Error, Queue, QueueName};

#[derive(Default)]
pub(crate) struct Stream;

#[async_trait]
impl Subject for Stream {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let config = StreamConfig::new(endpoint).expect("the suite gives a URL");
        let config = config.environment(environment.clone());
        Ok(Arc::new(StreamQueue::connect(config, queue.clone()).await?))
    }

    fn plain_push(&self, queue: &QueueName, payload: &[u8]) -> Vec<Vec<u8>> {
        let words = [b"XADD", queue.as_str().as_bytes(), b"*", b"job", payload];
        words.map(<[u8]>::to_vec).into()
    }

    fn scripts(&self) -> Vec<String> {
        backend_stream::script_names().map(str::to_owned).collect()
    }
}
