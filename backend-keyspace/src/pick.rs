//! Finding ready jobs in a database that keeps no list of them.
//!
//! ```text
//!  count   DBSIZE less the leases and the queue's own keys: is there any?
//!  draw    RANDOMKEY, some dozens of times in one script
//!  sweep   SCAN, a thousand keys a call, until it was once round the whole database
//! ```
//!
//! The count costs one command and is exact, so a worker with nothing to do sends
//! nothing else. Drawing finds jobs at once while they are a good part of all keys. What
//! it misses, the sweep finds for certain: SCAN shows each key that stays. It goes on
//! where the last one ended, so that a few jobs among many leases are not looked for
//! from the start each time. The claim script then takes each job by RENAMENX, if it is
//! still there: whoever else picked it has lost nothing but a look.
//!
//! Keys that are no job's make the count too high. Where a sweep finds nothing although
//! something is unclaimed, another counts them, and from then on only what is above that
//! number is looked for at once. Should a foreign key go in the same instant in which a bare
//! SET comes, the number stays and the job is found by one page a claim: in a database
//! of a million foreign keys that takes a thousand claims. A notification forgets the
//! number.

use std::sync::{
    Mutex, PoisonError,
    atomic::{AtomicU64, Ordering},
};

use bytes::Bytes;
use relq_core::{Error, Operation};

use crate::scripts::{PAGE, Store, Swept, Wanted};

/// SCAN's cursor before the first page, and behind the last.
const START: Bytes = Bytes::from_static(b"0");

/// More than so many jobs are not drawn by lot: a page of the sweep shows more of them.
const MOST_BY_LOT: u32 = 64;

/// How often a claim draws at least. A job among so many keys is missed by one claim in
/// three, one among half as many by one in eight.
const DRAWS: u32 = 64;

/// Jobs that are picked beyond those wanted, for others may pick the same.
const SPARE: u32 = 16;

/// What one queue remembers of looking for jobs.
#[derive(Debug)]
pub(crate) struct Finder {
    /// Where the next sweep begins.
    cursor: Mutex<Bytes>,
    /// How many keys are known to be no ready job.
    foreign_keys: AtomicU64,
}

impl Finder {
    pub(crate) fn new() -> Self {
        Self { cursor: Mutex::new(START), foreign_keys: AtomicU64::new(0) }
    }

    /// What a claim of so many jobs is to look for.
    pub(crate) fn wanted(&self, jobs: u32) -> Wanted {
        let draws = if jobs > MOST_BY_LOT { 0 } else { DRAWS + 4 * jobs };
        Wanted { jobs: with_spare(jobs), draws, foreign_keys: self.foreign_keys() }
    }

    pub(crate) fn foreign_keys(&self) -> u64 {
        self.foreign_keys.load(Ordering::Relaxed)
    }

    /// There are no more than so many foreign keys.
    pub(crate) fn know(&self, at_most: u64) {
        self.foreign_keys.fetch_min(at_most, Ordering::Relaxed);
    }

    /// Somebody says that there is something.
    pub(crate) fn forget(&self) {
        self.foreign_keys.store(0, Ordering::Relaxed);
    }

    /// Begins a sweep for ready jobs where the last one was left.
    pub(crate) fn sweep(&self) -> Sweep {
        let cursor = self.cursor.lock().unwrap_or_else(PoisonError::into_inner).clone();
        Sweep::from(cursor, For::Items)
    }

    /// One page further, also for who comes next.
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

    /// The names of a page, beginning somewhere: two that see the same page are not to
    /// try for the same jobs.
    pub(crate) fn rotated(&self, store: &Store, mut items: Vec<Bytes>) -> Vec<Bytes> {
        let mut random = [0; 2];
        store.conn.environment().random().fill(&mut random);
        let from = usize::from(u16::from_le_bytes(random)) % items.len().max(1);
        items.rotate_left(from);
        items
    }

    /// A sweep of all showed no ready job while so many keys were unclaimed.
    pub(crate) fn learn(&self, sweep: &Sweep, unclaimed: u64) {
        self.foreign_keys.store(sweep.foreign_keys.min(unclaimed), Ordering::Relaxed);
    }
}

/// So many and some more.
pub(crate) fn with_spare(jobs: u32) -> u32 {
    jobs + jobs.min(SPARE)
}

/// What a sweep looks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum For {
    Items,
    All,
}

/// A way round the whole database, page by page.
#[derive(Debug)]
pub(crate) struct Sweep {
    target: For,
    cursor: Bytes,
    /// How often the end is still to be passed.
    ends_left: u32,
    /// Keys on the way since the start that are no ready job and no leased one.
    pub(crate) foreign_keys: u64,
}

impl Sweep {
    /// Looks at all, from the start to the end.
    pub(crate) fn of_all() -> Self {
        Self::from(START, For::All)
    }

    /// From there to the end, and then once round: SCAN promises to show what stays only
    /// to who goes from its start to its end.
    fn from(cursor: Bytes, target: For) -> Self {
        let ends_left = if cursor == START { 1 } else { 2 };
        Self { target, cursor, ends_left, foreign_keys: 0 }
    }

    /// The next page, or `None` at the end.
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
            For::Items => store.scan(operation, &self.cursor, PAGE).await?,
            For::All => store.sweep(operation, &self.cursor).await?,
        };
        self.foreign_keys += page.foreign_keys + page.orphans.len() as u64;
        self.cursor = page.next.clone();
        if self.cursor == START {
            self.ends_left -= 1;
        }
        Ok(Some(page))
    }
}
