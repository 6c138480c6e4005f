//! This backend in each of its ways, as the suite takes it.

use std::sync::Arc;

use backend_circular::{CircularConfig, CircularQueue, FinishBy};
use conformance_tests::{Subject, async_trait};
use queue_core::{Environment, Error, Queue, QueueName};

macro_rules! subject {
    ($name:ident) => {
        #[derive(Default)]
        pub(crate) struct $name;

        #[async_trait]
        impl Subject for $name {
            async fn connect(
                &self,
                endpoint: &str,
                queue: &QueueName,
                environment: &Environment,
            ) -> Result<Arc<dyn Queue>, Error> {
                open(FinishBy::$name, endpoint, queue, environment).await
            }

            fn scripts(&self) -> Vec<String> {
                backend_circular::script_names().map(str::to_owned).collect()
            }
        }
    };
}

subject!(Mark);
subject!(Lrem);

async fn open(
    finish: FinishBy,
    endpoint: &str,
    queue: &QueueName,
    environment: &Environment,
) -> Result<Arc<dyn Queue>, Error> {
    let config = CircularConfig::new(endpoint).expect("the suite gives a URL");
    let config = config.finish(finish).environment(environment.clone());
    Ok(Arc::new(CircularQueue::connect(config, queue.clone()).await?))
}
