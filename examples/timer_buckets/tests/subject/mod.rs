//! Describes this backend to the conformance suite, which tests it.

use std::sync::Arc;

use relq_conformance::{Subject, async_trait};
use relq_core::{
    Error, Queue, QueueName,
    environment::Environment,
    error::{ErrorContext, Operation},
};
use relq_timer_buckets::{TimerBucketsConfig, TimerBucketsQueue};

/// The queue of this example, as a subject of the conformance suite.
#[derive(Default)]
pub(crate) struct TimerBuckets;

#[async_trait]
impl Subject for TimerBuckets {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let config = TimerBucketsConfig::new(endpoint, environment.clone());
        let config = config.map_err(|error| Error::Invalid {
            at: ErrorContext {
                backend: "timer-buckets",
                operation: Operation::Connect,
            },
            reason: error.to_string(),
        })?;
        Ok(Arc::new(TimerBucketsQueue::connect(config, queue.clone()).await?))
    }

    fn scripts(&self) -> Vec<String> {
        relq_timer_buckets::testing::script_names().map(str::to_owned).collect()
    }
}
