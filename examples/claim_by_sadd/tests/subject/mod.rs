//! Describes this backend to the conformance suite, which tests it.

use std::sync::Arc;

use relq_claim_by_sadd::{BySaddConfig, BySaddQueue};
use relq_conformance::{Subject, async_trait};
use relq_core::{
    Error, Queue, QueueName,
    environment::Environment,
    error::{ErrorContext, Operation},
};

/// The queue of this example, as a subject of the conformance suite.
#[derive(Default)]
pub(crate) struct BySadd;

#[async_trait]
impl Subject for BySadd {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        let config = BySaddConfig::new(endpoint, environment.clone());
        let config = config.map_err(|error| Error::Invalid {
            at: ErrorContext {
                backend: "claim-by-sadd",
                operation: Operation::Connect,
            },
            reason: error.to_string(),
        })?;
        Ok(Arc::new(BySaddQueue::connect(config, queue.clone()).await?))
    }

    fn scripts(&self) -> Vec<String> {
        relq_claim_by_sadd::testing::script_names().map(str::to_owned).collect()
    }
}
