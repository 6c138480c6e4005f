//! The contender that uses SQLite without relq, with the same durability. It does the
//! same work as the backend with the fewest statements, so that the backend can be
//! compared with it.

use std::{path::Path, time::Instant};

use rusqlite::{Connection, params};

use crate::{
    failure::{CommandResult, Failure},
    plan::Plan,
    pushing::Numbers,
    sample::Sample,
    tally::Tally,
    workload::BATCH,
    workload::Workload,
};

/// SQLite without relq, as a contender: a file with one table, and one connection to
/// it.
#[derive(Debug)]
pub(crate) struct RawSqlite {
    conn: Connection,
    tally: Tally,
    pushed: u64,
}

impl RawSqlite {
    /// Creates the SQLite file. Each commit waits for the disk, as the commits of the
    /// backend do by default.
    pub(crate) fn open(file: &Path) -> CommandResult<Self> {
        let conn = Connection::open(file).and_then(|conn| {
            conn.execute_batch(
                "PRAGMA journal_mode = WAL; PRAGMA synchronous = FULL;
                 CREATE TABLE jobs (
                   id INTEGER PRIMARY KEY, payload BLOB, is_leased INTEGER DEFAULT 0);
                 CREATE INDEX ready ON jobs (id) WHERE is_leased = 0;",
            )?;
            Ok(conn)
        });
        let conn = conn.map_err(|error| failed(&error))?;
        Ok(Self { conn, tally: Tally::new(0), pushed: 0 })
    }

    /// Runs a workload once. Returns `None` for the workload in which a worker waits
    /// for a job, because SQLite has no call that waits.
    pub(crate) fn run(
        &mut self,
        workload: Workload,
        plan: &Plan,
    ) -> CommandResult<Option<Sample>> {
        if workload == Workload::DrainAhead {
            self.push(plan, plan.many, BATCH).map_err(|error| failed(&error))?;
        }
        let began = Instant::now();
        let ended = match workload {
            Workload::PushOne => self.push(plan, plan.single, 1),
            Workload::PushTasks => self.push(plan, plan.many, 1),
            Workload::PushBatches => self.push(plan, plan.many, BATCH),
            Workload::DrainOne | Workload::DrainTasks => self.drain(1),
            Workload::DrainAhead | Workload::DrainBatches => self.drain(BATCH),
            Workload::HandOver => return Ok(None),
        };
        let is_drain = ended.map_err(|error| failed(&error))?;
        let took = began.elapsed();
        let exact = is_drain.then(|| self.tally.is_exact(self.pushed));
        Ok(Some(Sample { jobs: self.pushed, took, exact, ..Sample::default() }))
    }

    fn push(&mut self, plan: &Plan, jobs: u64, batch: usize) -> rusqlite::Result<bool> {
        self.tally = Tally::new(jobs);
        let numbers = Numbers::below(jobs, plan.patience);
        while let Some(batch) = numbers.take_many(batch) {
            let transaction = self.conn.transaction()?;
            for number in batch {
                let payload = self.tally.payload(number, plan.payload);
                transaction
                    .prepare_cached("INSERT INTO jobs (payload) VALUES (?)")?
                    .execute(params![payload])?;
            }
            transaction.commit()?;
        }
        self.pushed = numbers.given();
        Ok(false)
    }

    /// Takes all jobs in batches: one transaction leases a batch, and the next removes
    /// it.
    fn drain(&mut self, batch: usize) -> rusqlite::Result<bool> {
        loop {
            let transaction = self.conn.transaction()?;
            let taken = transaction
                .prepare_cached(
                    "UPDATE jobs SET is_leased = 1 WHERE id IN (
                       SELECT id FROM jobs WHERE is_leased = 0 ORDER BY id LIMIT ?)
                     RETURNING id, payload",
                )?
                .query_map(params![batch], |row| Ok((row.get(0)?, row.get(1)?)))?
                .collect::<rusqlite::Result<Vec<(i64, Vec<u8>)>>>()?;
            transaction.commit()?;
            if taken.is_empty() {
                return Ok(true);
            }
            let transaction = self.conn.transaction()?;
            for (id, payload) in taken {
                self.tally.handled(&payload);
                transaction
                    .prepare_cached("DELETE FROM jobs WHERE id = ?")?
                    .execute(params![id])?;
            }
            transaction.commit()?;
        }
    }
}

fn failed(error: &rusqlite::Error) -> Failure {
    Failure::Failed(format!("a SQLite statement of the benchmark failed: {error}"))
}
