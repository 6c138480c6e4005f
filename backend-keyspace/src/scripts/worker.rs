//! Calls the scripts that producers, workers and reapers need.

use std::time::Duration;

use bytes::Bytes;
use relq_core::{
    ClaimRequest, Error, JobId, Receipt, environment::Timestamp, error::Operation,
};
use relq_redis::{
    Reply,
    bookkeeping::{Bookkeeping, Finish, Step},
    command, entry,
    entry::millis,
};

use super::{SCRIPTS, Store};
use crate::{keys, lease};

/// The number of keys that one page of SCAN covers. The server needs some tenths of a
/// millisecond for a page.
pub(crate) const PAGE: u32 = 1000;

/// How many unique keys, ids and errors one search for deleted jobs covers. Fewer than
/// `PAGE`, because errors may be long.
const FREED_PAGE: u32 = 100;

/// With more leases than this, deleted jobs are not searched for: the search reads all
/// leases, and the server runs nothing else meanwhile.
const MOST_LEASES: u32 = 1000;

/// The maximum number of foreign keys that the scan of a page returns by name, to show
/// them in a report.
const NAMED: u32 = 10;

/// The wishes of a claim for the pick script: how many jobs, and how hard it searches.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Wanted {
    pub(crate) jobs: u32,
    /// How many random keys the pick script may draw.
    pub(crate) draws: u32,
    /// The number of unclaimed keys that are known to be foreign keys, and so not ready
    /// jobs. A key is unclaimed if it is not leased and not one of the queue's own.
    pub(crate) foreign_keys: u64,
}

/// How many jobs a claim has leased so far, also counting those that it then buries.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Taken {
    pub(crate) jobs: u32,
    /// The size of the leased jobs' entries as stored, in bytes.
    pub(crate) bytes: usize,
    /// Whether the next job is too large for the bytes that the claim has left.
    pub(crate) is_full: bool,
}

/// The result of the pick script: the queue's state, and the keys that it drew.
#[derive(Debug)]
pub(crate) struct Picked {
    pub(crate) now_us: String,
    pub(crate) is_paused: bool,
    pub(crate) due_in: Option<Duration>,
    /// How many keys are ready jobs or foreign keys.
    pub(crate) unclaimed: u64,
    pub(crate) items: Vec<Bytes>,
}

/// The keys of one page of the database, sorted by what they are.
#[derive(Debug, Default)]
pub(crate) struct Swept {
    pub(crate) next: Bytes,
    /// The keys of ready jobs on the page.
    pub(crate) items: Vec<Bytes>,
    /// The processing keys on the page that no lease names.
    pub(crate) orphans: Vec<Bytes>,
    /// How many keys on the page are foreign.
    pub(crate) foreign_keys: u64,
    /// The names of some of the foreign keys on the page.
    pub(crate) named: Vec<Bytes>,
}

/// A picked job, with the keys and the id under which the claim script leases it.
#[derive(Debug)]
pub(crate) struct Ask {
    pub(crate) item: Bytes,
    pub(crate) id: String,
    pub(crate) processing: Bytes,
}

/// The result of the claim script: the leased entries, and the state of the queue.
#[derive(Debug)]
pub(crate) struct Claimed {
    pub(crate) now: Timestamp,
    pub(crate) unclaimed: u64,
    /// Whether a picked job was left because it exceeds the bytes that the claim may
    /// still return.
    pub(crate) is_full: bool,
    /// For each picked job its entry, or `None` if the script did not lease it.
    pub(crate) entries: Vec<Option<Bytes>>,
}

/// A page of expired leases, and when the next lease expires.
#[derive(Debug)]
pub(crate) struct Overdue {
    pub(crate) more: bool,
    pub(crate) next_in: Option<Duration>,
    pub(crate) leases: Vec<Bytes>,
}

impl Store {
    /// Stores plain jobs: all of them or none. Returns whether they are stored.
    pub(crate) async fn append(
        &self,
        ids: &[JobId],
        entries: &[Vec<u8>],
    ) -> Result<bool, Error> {
        let items = ids.iter().map(|id| keys::item(id.as_str()));
        let keys: Vec<_> =
            [self.keys.bookkeeping.wake.clone()].into_iter().chain(items).collect();
        let call = SCRIPTS.append.keys(&keys).arg(entries);
        Ok(call.run(&self.conn, Operation::Push).await?.number()? == 1)
    }

    pub(crate) async fn pick(&self, wanted: Wanted) -> Result<Picked, Error> {
        let call = self
            .call(&SCRIPTS.pick, &[])
            .arg(wanted.jobs)
            .arg(wanted.draws)
            .arg(wanted.foreign_keys);
        let mut parts = call.run(&self.conn, Operation::Claim).await?.parts()?;
        Ok(Picked {
            now_us: parts.part().text()?,
            is_paused: parts.part().number()? == 1,
            due_in: parts.part().optional_ms()?,
            unclaimed: unsigned(parts.part().number()?),
            items: parts.map(Reply::bytes).collect::<Result<_, _>>()?,
        })
    }

    /// Searches a page of the database for ready jobs, from `cursor` on. The page holds
    /// `count` keys or a few more.
    pub(crate) async fn scan(
        &self,
        operation: Operation,
        cursor: &[u8],
        count: u32,
    ) -> Result<Swept, Error> {
        let mut cmd = command("SCAN");
        cmd.arg(cursor).arg("MATCH").arg(format!("{}*", keys::ITEM));
        cmd.arg("COUNT").arg(count).arg("TYPE").arg("string");
        let mut parts = self.conn.call(operation, &cmd).await?.parts()?;
        Ok(Swept {
            next: parts.part().bytes()?,
            items: names(parts.part())?,
            ..Swept::default()
        })
    }

    /// Reads a page of all keys of the database, not only ready jobs. It takes the
    /// server about ten times as long as `scan`.
    pub(crate) async fn sweep(
        &self,
        operation: Operation,
        cursor: &[u8],
    ) -> Result<Swept, Error> {
        let call = self.call(&SCRIPTS.sweep, &[]).arg(cursor).arg(PAGE).arg(NAMED);
        let mut parts = call.run(&self.conn, operation).await?.parts()?;
        Ok(Swept {
            next: parts.part().bytes()?,
            items: names(parts.part())?,
            orphans: names(parts.part())?,
            foreign_keys: parts.part().count()?,
            named: names(parts.part())?,
        })
    }

    pub(crate) async fn claim(
        &self,
        asked: &[Ask],
        wanted: Wanted,
        taken: Taken,
        lease: Duration,
    ) -> Result<Claimed, Error> {
        let keys = |ask: &Ask| [ask.item.clone(), ask.processing.clone()];
        let keys: Vec<_> = asked.iter().flat_map(keys).collect();
        let mut call = self
            .call(&SCRIPTS.claim, &keys)
            .arg(wanted.jobs)
            .arg(millis(lease))
            .arg(entry::bare_header())
            .arg(wanted.foreign_keys)
            .arg(ClaimRequest::MAX_BYTES.saturating_sub(taken.bytes))
            .arg(if taken.jobs == 0 { "any" } else { "bounded" });
        asked.iter().for_each(|ask| call.push_arg(&ask.id));
        let mut parts = call.run(&self.conn, Operation::Claim).await?.parts()?;
        let now = Timestamp::from_unix_ms(parts.part().number()?);
        let unclaimed = unsigned(parts.part().number()?);
        let is_full = parts.part().number()? == 1;
        let entries = parts.map(Reply::optional_bytes).collect::<Result<_, _>>()?;
        Ok(Claimed { now, unclaimed, is_full, entries })
    }

    /// Ends the jobs of these leases, up to as many as one script call handles.
    pub(crate) async fn finish(
        &self,
        receipts: &[&Receipt],
        Finish { how, needs_side_records }: Finish,
    ) -> Result<Step, Error> {
        let leases = receipts.iter().map(|receipt| lease::key_of(receipt).into());
        let leases: Vec<Bytes> = leases.collect();
        let call = if needs_side_records {
            let call = self.call(&SCRIPTS.finish_with_side_records, &leases);
            call.arg(how.total()).arg(Bookkeeping::memory_ms())
        } else {
            let own = [&self.keys.leased, &self.keys.bookkeeping.totals];
            let own = own.into_iter().map(String::as_bytes);
            let keys: Vec<_> = own.chain(leases.iter().map(|it| &it[..])).collect();
            SCRIPTS.finish.keys(&keys).arg(how.total())
        };
        let reply = call.run(&self.conn, Operation::Settle).await?;
        Step::whole(receipts.len(), reply)
    }

    /// Finds a page of expired leases.
    pub(crate) async fn overdue(&self, page: u32) -> Result<Overdue, Error> {
        let call = SCRIPTS.overdue.keys(&[&self.keys.leased]).arg(page);
        let reply = call.run(&self.conn, Operation::Recover).await?;
        let mut parts = reply.parts()?;
        Ok(Overdue {
            more: parts.part().number()? == 1,
            next_in: parts.part().optional_ms()?,
            leases: parts.map(Reply::bytes).collect::<Result<_, _>>()?,
        })
    }

    /// Recovers the jobs of these expired leases, up to as many as one script call
    /// handles. Returns how many were made ready, how many were buried, and whether
    /// leases are left.
    pub(crate) async fn recover(
        &self,
        leases: &[Bytes],
    ) -> Result<(u32, u32, bool), Error> {
        let keys = |lease: &Bytes| {
            let item = [keys::ITEM.as_bytes(), &lease::id_of(lease)].concat();
            [lease.clone(), item.into()]
        };
        let keys: Vec<_> = leases.iter().flat_map(keys).collect();
        let call = self.call(&SCRIPTS.recover, &keys);
        let counts = call.run(&self.conn, Operation::Recover).await?.numbers()?;
        let count = |at: usize| {
            counts.get(at).and_then(|count| u32::try_from(*count).ok()).unwrap_or(0)
        };
        Ok((count(0), count(1), count(2) == 1))
    }

    /// Gives a lease to each processing key without one on a page of the database.
    /// Returns how many got a lease, and the cursor of the next page.
    pub(crate) async fn adopt(
        &self,
        cursor: &[u8],
        lease: Duration,
    ) -> Result<(u64, Bytes), Error> {
        let call = SCRIPTS
            .adopt
            .keys(&[&self.keys.leased])
            .arg(cursor)
            .arg(PAGE)
            .arg(millis(lease));
        let reply = call.run(&self.conn, Operation::Recover).await?;
        let mut parts = reply.parts()?;
        Ok((parts.part().count()?, parts.part().bytes()?))
    }

    /// Frees the side records of jobs that another client has deleted, one page from
    /// each of these cursors. Returns how many jobs were deleted, and the next cursors.
    pub(crate) async fn free_deleted(
        &self,
        cursors: &[Bytes; 3],
    ) -> Result<(u64, [Bytes; 3]), Error> {
        let mut call = self.call(&SCRIPTS.free_deleted, &[]);
        cursors.iter().for_each(|cursor| call.push_arg(&cursor[..]));
        let call = call.arg(FREED_PAGE).arg(MOST_LEASES).arg(Bookkeeping::memory_ms());
        let reply = call.run(&self.conn, Operation::Recover).await?;
        let mut parts = reply.parts()?;
        Ok((
            parts.part().count()?,
            [parts.part().bytes()?, parts.part().bytes()?, parts.part().bytes()?],
        ))
    }

    /// Passes a notification on to another worker's notifier.
    pub(crate) async fn notify(&self) -> Result<(), Error> {
        let call = SCRIPTS.notify.keys(&[&self.keys.bookkeeping.wake]);
        call.run(&self.conn, Operation::Claim).await.map(drop)
    }
}

fn names(reply: Reply) -> Result<Vec<Bytes>, Error> {
    reply.list()?.into_iter().map(Reply::bytes).collect()
}

/// Clamps a negative count to zero. Keys that expire by themselves can make a count
/// negative.
fn unsigned(count: i64) -> u64 {
    u64::try_from(count).unwrap_or(0)
}
