//! relq's conformance suite, on this backend. This file is all that it takes.

use std::sync::Arc;

use backend_memory::MemoryStore;
use conformance_tests::{Subject, async_trait};
use queue_core::{Environment, Error, Queue, QueueName};

/// Each case begins with an empty store; its actors share it.
#[derive(Default)]
struct Memory {
    store: MemoryStore,
}

#[async_trait]
impl Subject for Memory {
    async fn connect(
        &self,
        _endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        Ok(Arc::new(self.store.open(queue.clone(), environment.clone())))
    }
}

conformance_tests::conformance!(Memory, embedded);
