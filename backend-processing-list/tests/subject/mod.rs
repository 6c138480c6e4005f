//! This backend in each of its modes, as the suite takes it.

use std::sync::Arc;

use backend_processing_list::{Mode, ProcessingListConfig, ProcessingListQueue};
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
                open(Mode::$name, endpoint, queue, environment).await
            }

            fn scripts(&self) -> Vec<String> {
                let names = backend_processing_list::script_names(Mode::$name);
                names.map(str::to_owned).collect()
            }
        }
    };
}

subject!(PerWorker);
subject!(Shared);

async fn open(
    mode: Mode,
    endpoint: &str,
    queue: &QueueName,
    environment: &Environment,
) -> Result<Arc<dyn Queue>, Error> {
    let config = ProcessingListConfig::new(endpoint).expect("the suite gives a URL");
    let config = config.mode(mode).environment(environment.clone());
    Ok(Arc::new(ProcessingListQueue::connect(config, queue.clone()).await?))
}
