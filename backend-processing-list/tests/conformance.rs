//! The rules that every backend keeps, judged on this one, in each of its modes.

use std::sync::Arc;

use backend_processing_list::{Mode, ProcessingListConfig, ProcessingListQueue};
use conformance_tests::{Subject, async_trait};
use queue_core::{Environment, Error, Queue, QueueName};

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

fn scripts(mode: Mode) -> Vec<String> {
    backend_processing_list::script_names(mode).map(str::to_owned).collect()
}

mod per_worker {
    use super::*;

    #[derive(Default)]
    struct PerWorker;

    #[async_trait]
    impl Subject for PerWorker {
        async fn connect(
            &self,
            endpoint: &str,
            queue: &QueueName,
            environment: &Environment,
        ) -> Result<Arc<dyn Queue>, Error> {
            open(Mode::PerWorker, endpoint, queue, environment).await
        }

        fn scripts(&self) -> Vec<String> {
            scripts(Mode::PerWorker)
        }
    }

    conformance_tests::conformance!(PerWorker, redis);
}

mod shared {
    use super::*;

    #[derive(Default)]
    struct Shared;

    #[async_trait]
    impl Subject for Shared {
        async fn connect(
            &self,
            endpoint: &str,
            queue: &QueueName,
            environment: &Environment,
        ) -> Result<Arc<dyn Queue>, Error> {
            open(Mode::Shared, endpoint, queue, environment).await
        }

        fn scripts(&self) -> Vec<String> {
            scripts(Mode::Shared)
        }
    }

    conformance_tests::conformance!(Shared, redis);
}
