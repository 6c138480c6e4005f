//! Finds ready jobs in a database that keeps no list of them.
//!
//! ```text
//!  count   DBSIZE minus the leases and the queue's own keys: is a job ready?
//!  draw    RANDOMKEY, some dozens of times in one script
//!  sweep   SCAN, a thousand keys a call, through the whole database
//! ```
//!
//! The count costs one command and is exact, so a worker with nothing to do sends
//! nothing else. Drawing finds jobs quickly while they are a large part of all keys.
//! The sweep finds every job that drawing misses, because SCAN returns each key that
//! stays in the database. A sweep starts where the last one ended, so a few jobs among
//! many leases are not searched for from the start each time. The claim script then
//! takes each job by RENAMENX if the job is still there. A worker that picked the same
//! job gets nothing for it and goes on.
//!
//! Foreign keys make the count too high. If a sweep finds no job although keys are
//! unclaimed, a second sweep counts the foreign keys. From then on, a claim starts a
//! search only if the count exceeds that number. A foreign key may vanish in the same
//! instant in which a bare SET adds a job. Then the count does not change, and the job
//! is found by the one page that each claim scans: with a million foreign keys that
//! takes a thousand claims. A notification resets the number.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use relq_core::{Error, error::Operation};

use crate::scripts::{PAGE, Store, Swept, Wanted};

/// SCAN's cursor before the first page and after the last page.
const START: Bytes = Bytes::from_static(b"0");

/// The most jobs for which a claim draws random keys. A claim of more jobs sweeps the
/// keys by pages instead, because a page finds more jobs than the draws do.
const MOST_BY_RANDOM_KEYS: u32 = 64;

/// How many random keys a claim draws at least. If one key in 64 is a ready job, 64
/// draws find none in one claim of three; if one key in 32 is, in one claim of eight.
const DRAWS: u32 = 64;

/// The maximum number of jobs that a claim picks in addition to those that it wants. It
/// may need them, because other workers may take some of the same jobs first.
const SPARE: u32 = 16;

/// The state that a queue keeps between searches for jobs.
#[derive(Debug)]
pub(crate) struct Finder {
    /// The cursor of SCAN at which the next sweep begins.
    cursor: Mutex<Bytes>,
    /// The number of unclaimed keys that are known to be foreign keys, and so not ready
    /// jobs. A key is unclaimed if it is not leased and not one of the queue's own.
    foreign_keys: AtomicU64,
}

impl Finder {
    pub(crate) fn new() -> Self {
        Self { cursor: Mutex::new(START), foreign_keys: AtomicU64::new(0) }
    }

    /// Returns the request that a claim of `jobs` jobs sends to the pick script.
    pub(crate) fn wanted(&self, jobs: u32) -> Wanted {
        let draws = if jobs > MOST_BY_RANDOM_KEYS { 0 } else { DRAWS + 4 * jobs };
        Wanted { jobs: with_spare(jobs), draws, foreign_keys: self.foreign_keys() }
    }

    pub(crate) fn foreign_keys(&self) -> u64 {
        self.foreign_keys.load(Ordering::Relaxed)
    }

    /// Lowers the number of foreign keys to `at_most` if it is higher.
    pub(crate) fn know(&self, at_most: u64) {
        self.foreign_keys.fetch_min(at_most, Ordering::Relaxed);
    }

    /// Resets the number of foreign keys. Called after a notification, when ready jobs
    /// may exist.
    pub(crate) fn forget(&self) {
        self.foreign_keys.store(0, Ordering::Relaxed);
    }

    /// Begins a sweep for ready jobs at the page where the last sweep stopped.
    pub(crate) fn sweep(&self) -> Sweep {
        let cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Sweep::from(cursor, SweepTarget::Items)
    }

    /// Returns the next page of a sweep, and saves the position for the next sweep.
    pub(crate) async fn next_page(
        &self,
        store: &Store,
        sweep: &mut Sweep,
    ) -> Result<Option<Swept>, Error> {
        let page = sweep.next_page(store, Operation::Claim).await?;
        let mut cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner);
        *cursor = sweep.cursor.clone();
        Ok(page)
    }

    /// Rotates the keys of a page by a random number, so that two workers that see the
    /// same page do not try to lease the same jobs.
    pub(crate) fn rotated(&self, store: &Store, mut items: Vec<Bytes>) -> Vec<Bytes> {
        let mut random = [0; 2];
        store.conn.environment().random().fill(&mut random);
        let from = usize::from(u16::from_le_bytes(random)) % items.len().max(1);
        items.rotate_left(from);
        items
    }

    /// Records the number of foreign keys after a full sweep that found no ready job.
    /// It is at most `unclaimed`.
    pub(crate) fn learn(&self, sweep: &Sweep, unclaimed: u64) {
        self.foreign_keys.store(sweep.foreign_keys.min(unclaimed), Ordering::Relaxed);
    }
}

/// Returns how many jobs to pick for a claim of `jobs` jobs: up to `SPARE` more than it
/// wants.
pub(crate) fn with_spare(jobs: u32) -> u32 {
    jobs + jobs.min(SPARE)
}

/// Which keys a sweep searches for: only those of ready jobs, or all keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SweepTarget {
    Items,
    All,
}

/// A scan through the whole database, page by page.
#[derive(Debug)]
pub(crate) struct Sweep {
    target: SweepTarget,
    cursor: Bytes,
    /// How many more times the cursor must reach the end of the database before the
    /// sweep is complete.
    ends_left: u32,
    /// The number of foreign keys that the sweep has seen since its cursor was last at
    /// the start of the database.
    pub(crate) foreign_keys: u64,
}

impl Sweep {
    /// A sweep of all keys, from the start to the end.
    pub(crate) fn of_all() -> Self {
        Self::from(START, SweepTarget::All)
    }

    /// The rest of a sweep of all keys whose earlier pages were read: from `cursor` to the
    /// end.
    pub(crate) fn rest_of_all(cursor: Bytes) -> Self {
        let ends_left = u32::from(cursor != START);
        Self { target: SweepTarget::All, cursor, ends_left, foreign_keys: 0 }
    }

    /// A sweep from `cursor` to the end, and then once through the whole database: SCAN
    /// returns every key that exists throughout only if the cursor runs a full cycle.
    fn from(cursor: Bytes, target: SweepTarget) -> Self {
        let ends_left = if cursor == START { 1 } else { 2 };
        Self { target, cursor, ends_left, foreign_keys: 0 }
    }

    /// Reads the next page of the database. Returns `None` when the sweep has ended.
    pub(crate) async fn next_page(
        &mut self,
        store: &Store,
        operation: Operation,
    ) -> Result<Option<Swept>, Error> {
        if self.ends_left == 0 {
            return Ok(None);
        }
        if self.cursor == START {
            self.foreign_keys = 0;
        }
        let page = match self.target {
            SweepTarget::Items => store.scan(operation, &self.cursor, PAGE).await?,
            SweepTarget::All => store.sweep(operation, &self.cursor).await?,
        };
        self.foreign_keys += page.foreign_keys + page.orphans.len() as u64;
        self.cursor = page.next.clone();
        if self.cursor == START {
            self.ends_left -= 1;
        }
        Ok(Some(page))
    }
}
