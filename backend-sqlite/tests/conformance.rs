//! The rules that every backend keeps, judged on this one.

use std::{path::Path, sync::Arc};

use backend_sqlite::{Durability, SqliteConfig, SqliteQueue};
use conformance_tests::{Subject, async_trait};
use queue_core::{Environment, Error, Queue, QueueName};

#[derive(Default)]
struct Sqlite;

#[async_trait]
impl Subject for Sqlite {
    async fn connect(
        &self,
        endpoint: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        // Nobody cuts the power here, so that nothing has to wait for the disk.
        let config = SqliteConfig::file(Path::new(endpoint).join("jobs.db"))
            .durability(Durability::Normal)
            .environment(environment.clone());
        Ok(Arc::new(SqliteQueue::open(config, queue.clone()).await?))
    }
}

conformance_tests::conformance!(Sqlite, embedded);
