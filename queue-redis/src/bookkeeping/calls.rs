//! A queue's bookkeeping on a connection, and a typed function for each of its scripts.

use std::{num::NonZeroU32, time::Duration};

use bytes::Bytes;
use relq_core::{
    Error, JobId, Stats,
    error::Operation,
    limits::{DEDUPLICATION_WINDOW, MAX_DURATION},
    operator::{Redriven, WORKER_FORGOTTEN_AFTER},
    outcome::Recovered,
};

use super::{BookkeepingKeys, BookkeepingScripts, Step, Steps, step::slow_step_of};
use crate::{Call, Conn, Reply, Script, command, entry::millis};

/// How long a cancelled job's lease is remembered after its end, so that the worker
/// gets `Cancelled` and not `LeaseLost`.
const CANCELLED_MEMORY: Duration = Duration::from_secs(60);

/// The bookkeeping of one queue: the data beside its ready and leased jobs, such as
/// scheduled and dead jobs.
#[derive(Debug, Clone)]
pub struct Bookkeeping {
    /// The connection on which calls are sent.
    pub conn: Conn,
    /// The names of the bookkeeping's keys.
    pub keys: BookkeepingKeys,
    /// The names of the pattern's keys, in the order in which its `pattern.lua` binds
    /// them.
    pub pattern_keys: Vec<String>,
    /// The bookkeeping's scripts, built with the functions of this pattern.
    pub scripts: &'static BookkeepingScripts,
}

/// A leased job that failed, was postponed or cannot be delivered, and how to handle it.
#[derive(Debug)]
pub struct Failure<'a> {
    /// The lease that holds the job, in the form that the pattern's `find_leased`
    /// takes.
    pub lease: Vec<u8>,
    /// Delay until the next attempt; `None` buries the job.
    pub after: Option<Duration>,
    /// Why the job is buried: `f` failed for good, `m` malformed, `x` expired. With `p`
    /// the job is postponed (R26) and not buried.
    pub why: char,
    /// The error text to keep with the job. A postponed job keeps its last error.
    pub error: &'a str,
}

impl Bookkeeping {
    /// Creates the bookkeeping of a queue. Sends nothing.
    pub fn new(
        conn: &Conn,
        keys: &BookkeepingKeys,
        pattern_keys: Vec<String>,
        scripts: &'static BookkeepingScripts,
    ) -> Self {
        Self { conn: conn.clone(), keys: keys.clone(), pattern_keys, scripts }
    }

    /// Returns a copy that passes the keys `more` to scripts, after the pattern's own
    /// keys. The copy is meant for one call.
    #[must_use]
    pub fn with_keys(&self, more: impl IntoIterator<Item = String>) -> Self {
        let mut bookkeeping = self.clone();
        bookkeeping.pattern_keys.extend(more);
        bookkeeping
    }

    /// Begins a call of `script` with the keys of the bookkeeping and of the pattern.
    /// The caller adds the arguments and sends it.
    pub fn call<'a>(&self, script: &'a Script) -> Call<'a> {
        let mut keys = self.keys.all().to_vec();
        keys.extend(self.pattern_keys.iter().map(String::as_str));
        script.keys(&keys)
    }

    /// The most jobs that one script handles if a call can be split into several
    /// scripts.
    pub fn max_jobs_per_step(&self) -> NonZeroU32 {
        self.conn.environment().max_jobs_per_step()
    }

    /// The most jobs of one script that recovers them or gives them back.
    pub fn max_jobs_per_slow_step(&self) -> NonZeroU32 {
        slow_step_of(self.max_jobs_per_step())
    }

    /// Begins to split a call into steps, one script each. No script was sent yet.
    pub fn steps(&self) -> Steps {
        Steps::of(self.max_jobs_per_step())
    }

    /// How long ids are remembered after their job has ended, in milliseconds.
    pub fn memory_ms() -> u64 {
        millis(DEDUPLICATION_WINDOW)
    }

    /// How long a cancelled job's lease is remembered after its end, in milliseconds.
    pub fn cancelled_memory_ms() -> u64 {
        millis(CANCELLED_MEMORY)
    }

    /// Schedules, postpones or buries jobs, as many as one step handles.
    ///
    /// # Errors
    /// The errors of [`Conn::call`]. All calls here have these errors.
    pub async fn fail(
        &self,
        operation: Operation,
        failures: &[Failure<'_>],
    ) -> Result<Step, Error> {
        let mut call = self.call(&self.scripts.fail);
        for failure in failures {
            let after = failure.after.map_or(-1, |after| {
                i64::try_from(millis(after.min(MAX_DURATION))).unwrap_or(i64::MAX)
            });
            call.push_arg(&failure.lease);
            call.push_arg(after);
            call.push_arg(failure.why.to_string());
            call.push_arg(failure.error);
        }
        Step::read(call.run(&self.conn, operation).await?)
    }

    /// Puts jobs back to the front of the queue as if they had not been claimed, as
    /// many as one step handles. The job of the last lease is claimed first.
    ///
    /// # Errors
    /// The errors of [`fail`](Self::fail).
    pub async fn give_back(
        &self,
        operation: Operation,
        leases: &[Vec<u8>],
    ) -> Result<Step, Error> {
        let mut call = self.call(&self.scripts.give_back);
        leases.iter().for_each(|lease| call.push_arg(lease));
        Step::read(call.run(&self.conn, operation).await?)
    }

    /// Makes up to `page` due jobs ready.
    ///
    /// # Errors
    /// The errors of [`fail`](Self::fail).
    pub async fn promote(
        &self,
        operation: Operation,
        page: u32,
    ) -> Result<Recovered, Error> {
        let page = page.min(self.max_jobs_per_step().get());
        let call = self.call(&self.scripts.promote).arg(page);
        let counts = call.run(&self.conn, operation).await?.numbers()?;
        let count = |at: usize| counts.get(at).copied().unwrap_or(0);
        Ok(Recovered {
            promoted: u32::try_from(count(0)).unwrap_or(0),
            more: count(1) == 1,
            next_in: optional_ms(counts.get(2).copied().unwrap_or(-1)),
            ..Recovered::default()
        })
    }

    /// Forgets up to `page` each of the ids, tokens and cancelled leases that need not
    /// be remembered any longer. Cancels up to `page` followers whose leader has ended
    /// without being done (R30). Returns whether there are more.
    ///
    /// # Errors
    /// The errors of [`fail`](Self::fail).
    pub async fn forget(&self, page: u32) -> Result<bool, Error> {
        let page = page.min(self.max_jobs_per_step().get());
        let call = self
            .call(&self.scripts.forget)
            .arg(page)
            .arg(Self::memory_ms())
            .arg(millis(WORKER_FORGOTTEN_AFTER));
        Ok(call.run(&self.conn, Operation::Recover).await?.number()? == 1)
    }

    /// Reads the reply of a pattern's recover script: {made ready, buried, 1 if there
    /// is more, ms until the next lease ends or -1}.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another form.
    pub fn recovered(reply: Reply) -> Result<Recovered, Error> {
        let counts = reply.numbers()?;
        let count = |at: usize| counts.get(at).copied().unwrap_or(0);
        Ok(Recovered {
            requeued: u32::try_from(count(0)).unwrap_or(0),
            buried: u32::try_from(count(1)).unwrap_or(0),
            promoted: 0,
            more: count(2) == 1,
            next_in: optional_ms(counts.get(3).copied().unwrap_or(-1)),
        })
    }

    /// Ends a job that is scheduled, or that `lease` holds. Returns the job's earlier
    /// state as a word.
    ///
    /// # Errors
    /// The errors of [`fail`](Self::fail).
    pub async fn cancel(
        &self,
        job: &JobId,
        lease: Option<&[u8]>,
    ) -> Result<Option<Bytes>, Error> {
        let call = self
            .call(&self.scripts.cancel)
            .arg(job.as_str())
            .arg(lease.unwrap_or_default())
            .arg(millis(DEDUPLICATION_WINDOW))
            .arg(millis(CANCELLED_MEMORY));
        call.run(&self.conn, Operation::Cancel).await?.optional_bytes()
    }

    /// Makes the dead jobs with the given ids ready again, as many as one step handles.
    /// Returns how many ids it handled, and how many jobs stay dead because they cannot be
    /// read.
    pub(super) async fn redrive_page(
        &self,
        ids: &[Bytes],
    ) -> Result<(usize, Redriven, u64), Error> {
        let mut call = self.call(&self.scripts.redrive);
        ids.iter().for_each(|id| call.push_arg(&id[..]));
        let mut parts = call.run(&self.conn, Operation::Redrive).await?.parts()?;
        let handled = parts.part().handled()?;
        let (moved, duplicates) = (parts.part().count()?, parts.part().count()?);
        let unreadable = parts.part().count()?;
        Ok((handled, Redriven { moved, duplicates }, unreadable))
    }

    /// Removes the dead jobs with the given ids, as many as one step handles. Returns
    /// how many ids it handled, and how many jobs it removed.
    pub(super) async fn purge_dead_page(
        &self,
        ids: &[Bytes],
    ) -> Result<(usize, u64), Error> {
        let mut call =
            self.call(&self.scripts.purge_dead).arg(millis(DEDUPLICATION_WINDOW));
        ids.iter().for_each(|id| call.push_arg(&id[..]));
        let mut parts = call.run(&self.conn, Operation::Purge).await?.parts()?;
        Ok((parts.part().handled()?, parts.part().count()?))
    }

    /// Pauses the queue: claims find no jobs until [`resume`](Self::resume).
    ///
    /// # Errors
    /// The errors of [`fail`](Self::fail).
    pub async fn pause(&self) -> Result<(), Error> {
        let mut cmd = command("SET");
        cmd.arg(&self.keys.paused).arg(1);
        self.conn.call(Operation::Pause, &cmd).await.map(drop)
    }

    /// Ends a pause, so that claims find jobs again.
    ///
    /// # Errors
    /// The errors of [`fail`](Self::fail).
    pub async fn resume(&self) -> Result<(), Error> {
        let call = self.call(&self.scripts.resume);
        call.run(&self.conn, Operation::Resume).await.map(drop)
    }

    /// Reads the reply of a pattern's stats script: {ready, leased, overdue, age of the
    /// oldest ready job (ms) or -1, then the counts of `bookkeeping_stats`}.
    ///
    /// # Errors
    /// [`Error::Unreadable`] if the reply has another form.
    pub fn stats(reply: Reply) -> Result<Stats, Error> {
        let counts = reply.numbers()?;
        let number = |at: usize| counts.get(at).copied().unwrap_or(0);
        let count = |at: usize| u64::try_from(number(at)).unwrap_or(0);
        let mut stats = Stats::new();
        stats.ready = count(0);
        stats.leased = count(1);
        stats.overdue = count(2);
        stats.oldest_ready_age = optional_ms(counts.get(3).copied().unwrap_or(-1));
        stats.scheduled = count(4);
        stats.dead = count(5);
        stats.finished = count(6);
        stats.discarded = count(7);
        stats.cancelled = count(8);
        stats.paused = number(9) == 1;
        stats.next_due_in = optional_ms(counts.get(10).copied().unwrap_or(-1));
        Ok(stats)
    }
}

/// A number of milliseconds from a reply, in which `-1` stands for `None`.
fn optional_ms(ms: i64) -> Option<Duration> {
    u64::try_from(ms).ok().map(Duration::from_millis)
}
