//! The SQL statements of claims, heartbeats and recovery, as functions.

use rusqlite::{Row, params};

use super::results::{Remembered, read_remembered};
use super::{
    rows::{Parameters, sql_for_rows},
    sql,
};
use crate::failure::Failure;
use crate::lease::Token;
use crate::store::Store;

/// The state of a queue that a claim reads before it takes the write lock, to learn
/// whether any job is ready.
pub(crate) struct Look {
    pub(crate) is_paused: bool,
    pub(crate) has_ready: bool,
    /// When the next scheduled job is due (ms since the Unix epoch), which is never for a
    /// held follower; `None` if there is none.
    pub(crate) due: Option<i64>,
}

/// A ready job with its body.
pub(crate) struct ReadyRow {
    pub(crate) job: i64,
    pub(crate) id: String,
    pub(crate) priority: u8,
    pub(crate) attempt: u32,
    pub(crate) max_attempts: u16,
    pub(crate) lease_ms: Option<u64>,
    pub(crate) expires_at: Option<i64>,
    /// The job's payload. `None` if the row of its body is missing.
    pub(crate) payload: Option<Vec<u8>>,
    pub(crate) headers: Option<Vec<u8>>,
    pub(crate) enqueued_at: Option<i64>,
    pub(crate) keeps_result: bool,
    /// The id of the job's batch; `None` if the job is not a piece.
    pub(crate) batch: Option<String>,
}

/// A lease to store.
pub(crate) struct NewLease {
    pub(crate) job: i64,
    pub(crate) token: Token,
    /// When it ends (ms since the Unix epoch).
    pub(crate) until: i64,
}

/// The values of a leased job that are needed to settle it.
pub(crate) struct Held {
    pub(crate) remembered: Remembered,
    pub(crate) attempt: u32,
    pub(crate) max_attempts: u32,
    /// The key of the job's batch; `None` if the job is not a piece.
    pub(crate) batch: Option<i64>,
    /// When the lease ends (ms since the Unix epoch).
    pub(crate) lease_end: i64,
}

impl Store<'_> {
    /// SQLite's `data_version`: a number that changes when another connection writes
    /// the file.
    pub(crate) fn data_version(&self) -> Result<i64, Failure> {
        let sql = "PRAGMA data_version";
        let read = || self.conn.prepare_cached(sql)?.query_row([], |row| row.get(0));
        Ok(self.steps.step(sql, read)?)
    }

    pub(crate) fn look_for_work(&self) -> Result<Look, Failure> {
        self.read(sql!("claim_look"), [self.queue], |row| {
            Ok(Look {
                is_paused: row.get(0)?,
                has_ready: row.get(1)?,
                due: row.get(2)?,
            })
        })
    }

    /// Reads the next ready jobs that belong to no batch. Stops at the first job that
    /// `wanted` refuses.
    pub(crate) fn next_ready(
        &self,
        most: usize,
        is_wanted: impl FnMut(&ReadyRow) -> bool,
    ) -> Result<Vec<ReadyRow>, Failure> {
        let params = params![self.queue, most];
        self.list_while(sql!("ready_next"), params, read_ready, is_wanted)
    }

    /// Leases ready jobs.
    pub(crate) fn lease(
        &self,
        leases: &[NewLease],
        worker: &str,
    ) -> Result<(), Failure> {
        let shared = params![worker, self.now_ms()];
        self.change_rows(
            sql_for_rows!("job_lease", 2),
            shared,
            leases,
            |lease, row| {
                row.add(lease.job)?;
                row.add(lease.token)?;
                row.add(lease.until)
            },
        )?;
        Ok(())
    }

    /// Finds the jobs that leases hold. A lease is given as the key of its job and its
    /// token. Returns the token of each lease that is not lost, and the values of its job.
    pub(crate) fn find_leases(
        &self,
        leases: &[(i64, &[u8])],
    ) -> Result<Vec<(Token, Held)>, Failure> {
        let sql = sql_for_rows!("lease_find", 1);
        let set = |(job, token): &(i64, &[u8]), row: &mut Parameters<'_, '_>| {
            row.add(job)?;
            row.add(token)
        };
        self.list_rows(sql, params![self.queue], leases, set, |row| {
            let held = Held {
                remembered: read_remembered(row, 1)?,
                attempt: row.get(4)?,
                max_attempts: row.get(5)?,
                batch: row.get(6)?,
                lease_end: row.get(7)?,
            };
            Ok((row.get(0)?, held))
        })
    }

    /// Finds the job of a lease. Returns `None` if the lease was lost.
    pub(crate) fn find_lease(
        &self,
        job: i64,
        token: &[u8],
    ) -> Result<Option<Held>, Failure> {
        Ok(self.find_leases(&[(job, token)])?.pop().map(|(_, held)| held))
    }

    /// Extends a lease until the given time (ms since the Unix epoch). Returns false if
    /// the lease was lost, or its job is a piece of a cancelled batch.
    pub(crate) fn extend_lease(
        &self,
        job: i64,
        token: &[u8],
        until: i64,
    ) -> Result<bool, Failure> {
        let params = params![job, token, self.queue, until];
        Ok(self.change(sql!("lease_extend"), params)? == 1)
    }

    pub(crate) fn was_cancelled(&self, token: &[u8]) -> Result<bool, Failure> {
        self.read(sql!("cancelled_find"), params![token, self.queue], |row| row.get(0))
    }

    /// Whether a worker holds any job, or has reported that it runs.
    pub(crate) fn is_known(&self, worker: &str) -> Result<bool, Failure> {
        self.read(sql!("worker_holds"), params![self.queue, worker], |row| row.get(0))
    }

    /// Gives back up to `most` jobs that a worker holds. Returns how many jobs it gave back.
    pub(crate) fn release_worker(
        &self,
        worker: &str,
        most: u32,
    ) -> Result<usize, Failure> {
        self.change(sql!("worker_release"), params![self.queue, worker, most])
    }

    /// Recovers up to `most` jobs whose lease has expired. Returns their new states.
    pub(crate) fn recover_expired(&self, most: u32) -> Result<Vec<String>, Failure> {
        let params = params![self.queue, self.now_ms(), most];
        self.list(sql!("expired_recover"), params, |row| row.get(0))
    }

    /// When the next lease ends, and when the next scheduled job is due (ms since the
    /// Unix epoch). Each is `None` if there is none.
    pub(crate) fn next_ends(&self) -> Result<(Option<i64>, Option<i64>), Failure> {
        self.read(sql!("next_end"), [self.queue], |row| Ok((row.get(0)?, row.get(1)?)))
    }
}

pub(super) fn read_ready(row: &Row<'_>) -> rusqlite::Result<ReadyRow> {
    Ok(ReadyRow {
        job: row.get(0)?,
        id: row.get(1)?,
        priority: row.get(2)?,
        attempt: row.get(3)?,
        max_attempts: row.get(4)?,
        lease_ms: row.get(5)?,
        expires_at: row.get(6)?,
        payload: row.get(7)?,
        headers: row.get(8)?,
        enqueued_at: row.get(9)?,
        keeps_result: row.get::<_, Option<i64>>(10)?.is_some(),
        batch: None,
    })
}
