//! Runs relq's conformance suite on this backend. No other file is needed.

use std::{process::ExitCode, sync::Arc};

use relq_conformance::{Profile, Subject, Tests, async_trait};
use relq_core::{Error, Queue, QueueName, environment::Environment};
use relq_memory::MemoryStore;

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

fn main() -> ExitCode {
    Tests::conformance::<Memory>(Profile::Embedded).run()
}
