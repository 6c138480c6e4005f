//! The SQL statements for an operator's calls, as functions.

use relq_core::{
    Stats,
    capabilities::ClaimBytes,
    operator::{JobParts, JobState, PeekOrder},
};
use rusqlite::{Row, params};

use super::results::{Remembered, read_remembered};
use super::sql;
use crate::failure::Failure;
use crate::store::Store;

/// The cursor of a peek: the values of the two sort columns in the previous page's last
/// row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct PeekKey(pub(crate) i64, pub(crate) i64);

impl PeekKey {
    /// The position before all jobs of a listing.
    pub(crate) fn start(order: PeekOrder) -> Self {
        match order {
            PeekOrder::AsServed => Self(i64::MIN, i64::MIN),
            PeekOrder::NewestFirst => Self(i64::MAX, i64::MAX),
        }
    }
}

/// Which jobs a peek reads, in which order, and which parts of them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Listing {
    pub(crate) state: JobState,
    pub(crate) order: PeekOrder,
    pub(crate) parts: JobParts,
}

impl Listing {
    fn sql(self) -> &'static str {
        use JobState::{Dead, Leased, Ready, Scheduled};
        use PeekOrder::{AsServed, NewestFirst};
        match (self.order, self.state) {
            (AsServed, Ready) => sql!("peek_ready"),
            (AsServed, Scheduled) => sql!("peek_scheduled"),
            (AsServed, Leased) => sql!("peek_leased"),
            (AsServed, Dead) => sql!("peek_dead"),
            (NewestFirst, Ready) => sql!("peek_ready_newest"),
            (NewestFirst, Scheduled) => sql!("peek_scheduled_newest"),
            (NewestFirst, Leased) => sql!("peek_leased_newest"),
            (NewestFirst, Dead) => sql!("peek_dead_newest"),
        }
    }
}

/// A job as it is stored in the file, in any state.
pub(crate) struct Peeked {
    pub(crate) key: PeekKey,
    pub(crate) id: String,
    pub(crate) payload: Option<Vec<u8>>,
    pub(crate) headers: Option<Vec<u8>>,
    pub(crate) attempt: u32,
    pub(crate) max_attempts: u32,
    pub(crate) priority: u8,
    pub(crate) unique_key: Option<String>,
    pub(crate) expires_at: Option<i64>,
    pub(crate) enqueued_at: Option<i64>,
    pub(crate) last_error: Option<String>,
    pub(crate) at: Option<i64>,
    pub(crate) since: Option<i64>,
    pub(crate) worker: Option<String>,
    pub(crate) reason: Option<String>,
    /// The id of the job's batch.
    pub(crate) batch: Option<String>,
    /// The id of the job that a held follower waits for.
    pub(crate) leader: Option<String>,
    /// The delay of a held follower, which begins when its leader is done.
    pub(crate) delay_ms: Option<u64>,
    pub(crate) lease_ms: Option<u64>,
    pub(crate) keep_ms: Option<u64>,
}

impl Peeked {
    /// Returns how many bytes the payload, the headers and the errors take.
    fn bytes(&self) -> usize {
        let length = |bytes: &Option<Vec<u8>>| bytes.as_ref().map_or(0, Vec::len);
        let text = |text: &Option<String>| text.as_ref().map_or(0, String::len);
        length(&self.payload)
            + length(&self.headers)
            + text(&self.last_error)
            + text(&self.reason)
    }
}

/// The position of a dead job in the order in which jobs were buried.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct DeadKey {
    pub(crate) since: i64,
    pub(crate) job: i64,
}

impl DeadKey {
    /// The position before all dead jobs.
    pub(crate) const START: Self = Self { since: i64::MIN, job: i64::MIN };

    /// The position after all jobs that were buried at a time (ms).
    pub(crate) fn last_of(since: i64) -> Self {
        Self { since, job: i64::MAX }
    }
}

/// The columns of a dead job that a redrive or a purge needs.
pub(crate) struct Buried {
    pub(crate) key: DeadKey,
    pub(crate) remembered: Remembered,
    pub(crate) unique_key: Option<String>,
}

/// The columns of a job that a cancel needs. The job is scheduled, ready or leased.
pub(crate) struct Found {
    pub(crate) job: i64,
    pub(crate) remembered: Remembered,
    pub(crate) state: String,
    pub(crate) token: Option<Vec<u8>>,
    /// When a scheduled job is due, or the lease of a leased job ends (ms since the
    /// Unix epoch).
    pub(crate) at: Option<i64>,
    /// The key of the job's batch; `None` if the job is not a piece.
    pub(crate) batch: Option<i64>,
    /// Whether it is held until its leader is done (R30).
    pub(crate) is_held: bool,
}

impl Store<'_> {
    pub(crate) fn stats(&self) -> Result<Stats, Failure> {
        self.read(sql!("stats"), params![self.queue, self.now_ms()], |row| {
            let mut stats = Stats::new();
            stats.ready = row.get(0)?;
            stats.scheduled = row.get(1)?;
            stats.leased = row.get(2)?;
            stats.overdue = row.get(3)?;
            stats.dead = row.get(4)?;
            stats.finished = row.get(5)?;
            stats.discarded = row.get(6)?;
            stats.cancelled = row.get(7)?;
            stats.paused = row.get(8)?;
            let due: Option<i64> = row.get(9)?;
            stats.next_due_in = due.map(|due| self.until(due));
            let oldest: Option<i64> = row.get(10)?;
            stats.oldest_ready_age = oldest.map(|since| self.age_of(since));
            Ok(stats)
        })
    }

    /// Reads up to `most` jobs of a listing. It stops earlier if their bytes exceed the
    /// limit of a page, and then also returns true.
    pub(crate) fn peek(
        &self,
        listing: Listing,
        after: PeekKey,
        most: u32,
    ) -> Result<(Vec<Peeked>, bool), Failure> {
        let has_bodies = listing.parts == JobParts::Whole;
        let params = params![self.queue, after.0, after.1, most, has_bodies];
        let mut bytes = ClaimBytes::default();
        let jobs = self.list_while(listing.sql(), params, read_peeked, |job| {
            bytes.take(job.bytes())
        })?;
        Ok((jobs, bytes.is_full()))
    }

    /// The position of the dead job that was buried last, not later than `until`.
    pub(crate) fn last_dead(&self, until: i64) -> Result<Option<DeadKey>, Failure> {
        self.find(sql!("dead_last"), params![self.queue, until], read_dead_key)
    }

    /// Reads one page of the dead jobs after position `after`, up to position `last`.
    pub(crate) fn dead_page(
        &self,
        after: DeadKey,
        last: DeadKey,
        most: u32,
    ) -> Result<Vec<Buried>, Failure> {
        let (DeadKey { since, job }, DeadKey { since: last_since, job: last_job }) =
            (after, last);
        let params = params![self.queue, since, job, last_since, last_job, most];
        self.list(sql!("dead_page"), params, read_buried)
    }

    pub(crate) fn find_dead(&self, id: &str) -> Result<Option<Buried>, Failure> {
        self.find(sql!("dead_find"), params![self.queue, id], read_buried)
    }

    pub(crate) fn redrive(&self, job: i64, turn: i64) -> Result<(), Failure> {
        self.change(sql!("dead_redrive"), params![job, turn, self.now_ms()])?;
        Ok(())
    }

    pub(crate) fn find_to_cancel(&self, id: &str) -> Result<Option<Found>, Failure> {
        self.find(sql!("cancel_find"), params![self.queue, id], |row| {
            Ok(Found {
                job: row.get(0)?,
                remembered: read_remembered(row, 1)?,
                state: row.get(4)?,
                token: row.get(5)?,
                at: row.get(6)?,
                batch: row.get(7)?,
                is_held: row.get(8)?,
            })
        })
    }

    /// Records that a leased job was cancelled. The record is kept until the given time
    /// (ms since the Unix epoch).
    pub(crate) fn remember_cancelled(
        &self,
        token: &[u8],
        until: i64,
    ) -> Result<(), Failure> {
        self.change(sql!("cancelled_add"), params![token, self.queue, until])?;
        Ok(())
    }

    /// Pauses or resumes claims.
    pub(crate) fn set_paused(&self, paused: i64) -> Result<(), Failure> {
        self.change(sql!("queue_pause"), params![self.queue, paused])?;
        Ok(())
    }

    /// Removes up to `most` jobs, their bodies and what is kept of them. Returns how many
    /// jobs it removed.
    pub(crate) fn purge_page(&self, most: u32) -> Result<usize, Failure> {
        let jobs: Vec<(i64, String, Option<i64>, bool)> =
            self.list(sql!("purge_page"), params![self.queue, most], |row| {
                Ok((row.get(0)?, row.get(1)?, row.get(2)?, row.get(3)?))
            })?;
        let keys: Vec<_> = jobs.iter().map(|(job, ..)| *job).collect();
        self.remove_bodies(&keys)?;
        for (job, id, keep_ms, is_held) in &jobs {
            if keep_ms.is_some() {
                self.remove_result(id)?;
            }
            if *is_held {
                self.remove_follower(*job)?;
            }
        }
        Ok(jobs.len())
    }

    /// Resets the counters and forgets all ids, push calls, cancelled leases, batches,
    /// followers and workers.
    pub(crate) fn forget_all(&self) -> Result<(), Failure> {
        self.change(sql!("queue_reset"), [self.queue])?;
        self.change(sql!("purge_ended_ids"), [self.queue])?;
        self.change(sql!("purge_push_calls"), [self.queue])?;
        self.change(sql!("purge_cancelled_leases"), [self.queue])?;
        self.change(sql!("purge_batches"), [self.queue])?;
        self.change(sql!("purge_followers"), [self.queue])?;
        self.change(sql!("purge_workers"), [self.queue])?;
        Ok(())
    }

    /// Runs SQLite's own check of the file. Returns a sentence for each problem.
    pub(crate) fn check_file(&self) -> Result<Vec<String>, Failure> {
        let found: Vec<String> =
            self.list("PRAGMA integrity_check", [], |row| row.get(0))?;
        Ok(found.into_iter().filter(|line| line != "ok").collect())
    }

    /// Looks for rows that contradict each other. Returns a sentence for each problem.
    pub(crate) fn check_tables(&self) -> Result<Vec<String>, Failure> {
        self.list(sql!("audit"), [self.queue], |row| row.get(0))
    }

    /// Calls a function with the id and the headers of each job that has headers.
    pub(crate) fn each_headers(
        &self,
        mut see: impl FnMut(&str, &[u8]),
    ) -> Result<(), Failure> {
        let sql = sql!("audit_headers");
        let query = || {
            let mut statement = self.prepare(sql)?;
            let mut rows = statement.query([self.queue])?;
            while let Some(row) = rows.next()? {
                self.steps.returned(row);
                let (id, headers): (String, Vec<u8>) = (row.get(0)?, row.get(1)?);
                see(&id, &headers);
            }
            Ok(())
        };
        Ok(self.steps.step(sql, query)?)
    }

    pub(crate) fn count_jobs(&self) -> Result<u64, Failure> {
        self.read(sql!("audit_count"), [self.queue], |row| row.get(0))
    }
}

pub(super) fn read_peeked(row: &Row<'_>) -> rusqlite::Result<Peeked> {
    Ok(Peeked {
        key: PeekKey(row.get(0)?, row.get(1)?),
        id: row.get(2)?,
        payload: row.get(3)?,
        headers: row.get(4)?,
        attempt: row.get(5)?,
        max_attempts: row.get(6)?,
        priority: row.get(7)?,
        unique_key: row.get(8)?,
        expires_at: row.get(9)?,
        last_error: row.get(10)?,
        at: row.get(11)?,
        since: row.get(12)?,
        worker: row.get(13)?,
        reason: row.get(14)?,
        enqueued_at: row.get(15)?,
        batch: row.get(16)?,
        leader: row.get(17)?,
        delay_ms: row.get(18)?,
        lease_ms: row.get(19)?,
        keep_ms: row.get(20)?,
    })
}

fn read_dead_key(row: &Row<'_>) -> rusqlite::Result<DeadKey> {
    Ok(DeadKey { since: row.get(0)?, job: row.get(1)? })
}

fn read_buried(row: &Row<'_>) -> rusqlite::Result<Buried> {
    let key = read_dead_key(row)?;
    let remembered = read_remembered(row, 2)?;
    Ok(Buried { key, remembered, unique_key: row.get(5)? })
}
