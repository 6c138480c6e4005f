//! The rules that every backend keeps, judged on this one.

use std::sync::Arc;

use backend_sqlite::{Durability, SqliteConfig, SqliteQueue};
use conformance_tests::{Subject, async_trait};
use queue_core::{Environment, Error, Queue, QueueName};
use tempfile::TempDir;

struct SqliteSubject {
    directory: TempDir,
}

#[async_trait]
impl Subject for SqliteSubject {
    async fn start() -> Self {
        Self { directory: TempDir::new().expect("a temporary directory") }
    }

    async fn connect(
        &self,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        // Nobody cuts the power here, so that nothing has to wait for the disk.
        let config = SqliteConfig::file(self.directory.path().join("jobs.db"))
            .durability(Durability::Normal)
            .environment(environment.clone());
        Ok(Arc::new(SqliteQueue::open(config, queue.clone()).await?))
    }
}

conformance_tests::conformance!(SqliteSubject, embedded);
