//! The SQL statements of a push, as functions.

use relq_core::{ClaimRequest, NewJob, capabilities::ClaimBytes};
use rusqlite::params;

use super::{rows::sql_for_rows, sql};
use crate::failure::Failure;
use crate::headers;
use crate::store::Store;

/// The columns of a new job.
pub(crate) struct JobRow<'a> {
    /// The key, which [`next_key`](Store::next_key) returned or a later one. `None` lets
    /// SQLite choose it, which is cheaper for a job alone.
    pub(crate) job: Option<i64>,
    pub(crate) id: &'a str,
    pub(crate) keeps_id: bool,
    /// For how long what became of the job is kept (R29). `None` if it is not kept.
    pub(crate) keep_ms: Option<i64>,
    pub(crate) priority: u8,
    /// The position among the ready jobs, or among the jobs that are due at the same
    /// time.
    pub(crate) turn: i64,
    /// The due time of a scheduled job (ms); `None` for a ready one.
    pub(crate) due: Option<i64>,
    pub(crate) max_attempts: u16,
    pub(crate) lease_ms: Option<i64>,
    pub(crate) expires_at: Option<i64>,
    pub(crate) unique_key: Option<&'a str>,
}

/// The job that holds a unique key, so that a push with that key is a duplicate.
pub(crate) struct Holder {
    pub(crate) job: i64,
    pub(crate) id: String,
    pub(crate) state: String,
    pub(crate) expires_at: Option<i64>,
    /// Whether it is held until its leader is done (R30).
    pub(crate) is_held: bool,
}

impl Store<'_> {
    /// Finds the stored push call with this token. Returns its number of jobs and its
    /// encoded results.
    pub(crate) fn find_push_call(
        &self,
        token: &str,
    ) -> Result<Option<(usize, String)>, Failure> {
        let params = params![self.queue, token, self.now_ms()];
        self.find(sql!("push_call_find"), params, |row| Ok((row.get(0)?, row.get(1)?)))
    }

    pub(crate) fn add_push_call(
        &self,
        token: &str,
        jobs: usize,
        answers: &str,
        until: i64,
    ) -> Result<(), Failure> {
        let params = params![self.queue, token, jobs, answers, until];
        self.change(sql!("push_call_add"), params)?;
        Ok(())
    }

    /// Whether an id is in use: a stored job has it, or an ended job whose id is still
    /// remembered.
    pub(crate) fn is_id_taken(&self, id: &str) -> Result<bool, Failure> {
        let params = params![self.queue, id, self.now_ms()];
        self.read(sql!("id_find"), params, |row| row.get(0))
    }

    pub(crate) fn find_holder(&self, key: &str) -> Result<Option<Holder>, Failure> {
        self.find(sql!("unique_holder_find"), params![self.queue, key], |row| {
            Ok(Holder {
                job: row.get(0)?,
                id: row.get(1)?,
                state: row.get(2)?,
                expires_at: row.get(3)?,
                is_held: row.get(4)?,
            })
        })
    }

    /// Returns a key that is higher than those of all jobs in the file.
    pub(crate) fn next_key(&self) -> Result<i64, Failure> {
        self.read(sql!("job_next_key"), [], |row| row.get(0))
    }

    /// Stores jobs without their bodies, in the queue or in the batch with this key. Returns
    /// the key of the last one.
    pub(crate) fn add_jobs(
        &self,
        jobs: &[JobRow<'_>],
        batch: Option<i64>,
    ) -> Result<i64, Failure> {
        let shared = params![self.queue, self.now_ms(), batch];
        self.change_rows(sql_for_rows!("job_add", 3), shared, jobs, |job, row| {
            row.add(job.job)?;
            row.add(job.id)?;
            row.add(job.keeps_id)?;
            row.add(job.priority)?;
            row.add(job.turn)?;
            row.add(job.due)?;
            row.add(job.max_attempts)?;
            row.add(job.lease_ms)?;
            row.add(job.expires_at)?;
            row.add(job.unique_key)?;
            row.add(job.keep_ms)
        })?;
        Ok(self.conn.last_insert_rowid())
    }

    /// Stores the bodies of jobs, which are given with their keys. SQLite copies the bodies
    /// that it gets in one execution, so that it gets no more than a claim returns.
    pub(crate) fn add_bodies(
        &self,
        mut bodies: &[(i64, &NewJob)],
    ) -> Result<(), Failure> {
        while !bodies.is_empty() {
            let mut bytes = ClaimBytes::default();
            let fits = |(_, job): &&(i64, &NewJob)| bytes.take(job.total_bytes());
            let (some, rest) = bodies.split_at(bodies.iter().take_while(fits).count());
            self.change_rows(
                sql_for_rows!("body_add", 0),
                &[],
                some,
                |(key, job), row| {
                    row.add(key)?;
                    row.add(&*job.payload)?;
                    row.add(headers::encode(&job.headers))
                },
            )?;
            bodies = rest;
        }
        Ok(())
    }

    /// Moves a scheduled job, which is not held, to another time.
    pub(crate) fn reschedule(&self, job: i64, due: i64) -> Result<(), Failure> {
        let place = self.take_turns(1)?;
        self.change(sql!("job_reschedule"), params![job, due, place])?;
        Ok(())
    }

    /// Lets a job hold its unique key no longer.
    pub(crate) fn free_key(&self, job: i64) -> Result<(), Failure> {
        self.change(sql!("unique_key_free"), [job])?;
        Ok(())
    }

    /// Makes up to `most` due jobs ready. Returns how many it made ready.
    pub(crate) fn promote_due(&self, most: u32) -> Result<usize, Failure> {
        let now = self.now_ms();
        let due = sql!("due_count");
        let count: u32 =
            self.read(due, params![self.queue, now, most], |row| row.get(0))?;
        if count == 0 {
            return Ok(0);
        }
        let turn = self.take_turns(count)?;
        self.change(sql!("due_promote"), params![self.queue, now, turn, count])
    }

    /// Reserves `count` positions that no other job has, and returns the first. Before
    /// a caller reserves positions for jobs that become ready now, it promotes due
    /// jobs, so that those come first (R13).
    ///
    /// A reservation is at least one position for each call of the transaction, so that
    /// calls that need one position share it. Positions that none of them needs stay unused.
    pub(crate) fn take_turns(&self, count: u32) -> Result<i64, Failure> {
        let mut turns = self.turns.borrow_mut();
        if turns.end - turns.start < i64::from(count) {
            let more = count.max(self.calls);
            let first =
                self.read(sql!("turns_next"), [self.queue], |row| row.get(0))?;
            self.change(sql!("turns_take"), params![self.queue, more])?;
            *turns = first..first + i64::from(more);
        }
        let first = turns.start;
        turns.start += i64::from(count);
        Ok(first)
    }

    /// Whether there are expired ids, push calls, cancelled leases, results or reports of
    /// workers to forget.
    pub(crate) fn has_outdated(&self) -> Result<bool, Failure> {
        let times = [self.now_ms(), self.listed_until()];
        self.read(sql!("outdated"), times, |row| row.get(0))
    }

    /// Removes up to `most` expired ids, as many push calls, as many cancelled leases, and
    /// as many results. Of the results it removes about as many bytes as a claim returns.
    pub(crate) fn sweep(&self, most: u32) -> Result<(), Failure> {
        let params = params![self.now_ms(), most];
        self.change(sql!("sweep_ended_ids"), params)?;
        self.change(sql!("sweep_push_calls"), params)?;
        self.change(sql!("sweep_cancelled_leases"), params)?;
        let bytes = i64::try_from(ClaimRequest::MAX_BYTES).unwrap_or(i64::MAX);
        self.change(sql!("sweep_results"), params![self.now_ms(), most, bytes])?;
        Ok(())
    }
}
