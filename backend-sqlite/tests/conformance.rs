//! Runs the conformance suite on this backend.

use std::{path::Path, process::ExitCode, sync::Arc};

use relq_conformance::{
    Profile, Records, Subject, Tests, async_trait,
    own::sqlite::{self, SQLITE},
    sweep::processes::Embedded,
};
use relq_core::{Error, Queue, QueueName, environment::Environment};
use relq_sqlite::{Durability, SqliteConfig, SqliteQueue};

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
        // No test cuts the power, so no commit needs to wait for the disk.
        let config = SqliteConfig::file(Path::new(endpoint).join("jobs.db"))
            .durability(Durability::Normal)
            .environment(environment.clone());
        Ok(Arc::new(SqliteQueue::open(config, queue.clone()).await?))
    }

    fn records(&self) -> Option<Records<'_>> {
        Some(Box::new(sqlite::records))
    }

    fn processes(&self) -> Option<Embedded> {
        Some(SQLITE)
    }
}

fn main() -> ExitCode {
    Tests::conformance::<Sqlite>(Profile::Embedded).run()
}
