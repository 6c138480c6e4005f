//! Runs the conformance suite on this backend.

use std::{path::Path, process::ExitCode, sync::Arc};

use relq_conformance::{
    Profile, Subject, Tests, async_trait, own::sqlite::SQLITE,
    sweep::processes::Embedded,
};
use relq_core::{Error, Queue, QueueName, environment::Environment};
use relq_sqlite::{Durability, SqliteConfig, SqliteQueue};
use rusqlite::Connection;

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

    fn records(&self, endpoint: &str) -> Option<u64> {
        let file = Connection::open(Path::new(endpoint).join("jobs.db"));
        let file = file.expect("the file opens");
        let rows = |table: String| {
            let count = format!("SELECT count(*) FROM \"{table}\"");
            file.query_row(&count, (), |row| row.get::<_, u64>(0)).expect("a count")
        };
        let tables = "SELECT name FROM sqlite_schema WHERE type = 'table'";
        let mut tables = file.prepare(tables).expect("the schema can be read");
        let names = tables.query_map((), |row| row.get(0)).expect("the names");
        Some(names.map(|name| rows(name.expect("a name"))).sum())
    }

    fn processes(&self) -> Option<Embedded> {
        Some(SQLITE)
    }
}

fn main() -> ExitCode {
    Tests::conformance::<Sqlite>(Profile::Embedded).run()
}
