//! Calls the scripts that producers, workers and reapers need.

use std::sync::atomic::Ordering;

use bytes::Bytes;
use relq_core::{
    ClaimRequest, Error, Receipt, environment::Timestamp, error::Operation,
    outcome::Recovered,
};
use relq_redis::{
    Reply,
    bookkeeping::{Bookkeeping, Finish, Step},
    entry,
    entry::millis,
    pattern::{Attempt, Claimed, LeasedJob, WakeConditions},
};

use super::{SCRIPTS, Store};
use crate::{
    FinishBy,
    element::{InProcess, without_entry},
};

/// The maximum number of elements that one call of a script rotates or looks at. The
/// server runs no other command meanwhile.
pub(crate) const ROTATIONS: u32 = 1000;

/// The maximum number of waiting jobs for which a claim searches the head of the ring
/// before it rotates the ring, and the maximum of their bytes. With more bytes, the
/// script would read elements at the head only to learn that it must rotate.
const FEW: usize = 32;
const FEW_BYTES: usize = 1 << 20;

/// The result that the claim script reports: whether it leased jobs, and if not, why.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Found {
    /// The queue is paused.
    Paused,
    /// The claim leased jobs.
    Jobs,
    /// The claim found no jobs so far, but it has not looked at all elements.
    More,
    /// The ring has elements, but no waiting jobs.
    Nothing,
    /// The ring is empty.
    Empty,
}

impl Found {
    fn of(word: &[u8]) -> Self {
        match word {
            b"paused" => Self::Paused,
            b"found" => Self::Jobs,
            b"more" => Self::More,
            b"empty" => Self::Empty,
            _ => Self::Nothing,
        }
    }
}

/// Which leases to recover.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Recovery {
    /// All expired leases.
    All,
    /// Only leases of released workers whose jobs hold a unique key.
    Left,
}

/// Counts the elements that the script calls of one claim have rotated, so that the
/// claim stops after one whole rotation of the ring.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Rotated {
    elements: u64,
    of: u64,
}

impl Rotated {
    /// Adds the elements that another script call rotated. Returns whether the calls
    /// together have not yet made a whole rotation.
    fn goes_on(&mut self, next: Self) -> bool {
        self.elements += next.elements;
        self.of = next.of;
        self.elements < self.of
    }
}

impl Store {
    /// Pushes the entries of jobs without options, and wakes a worker.
    pub(crate) async fn push_plain(&self, entries: &[Vec<u8>]) -> Result<(), Error> {
        let keys = &self.keys;
        let call = SCRIPTS.push_plain.keys(&[&keys.circle, &keys.bookkeeping.wake]);
        call.arg(entries).run(&self.conn, Operation::Push).await.map(drop)
    }

    pub(crate) async fn claim(
        &self,
        ask: &ClaimRequest,
        rotated: &mut Rotated,
    ) -> Result<Claimed, Error> {
        let mut parts = self.call_claim(ask).await?.parts()?;
        let now = Timestamp::from_unix_ms(parts.part().number()? / 1000);
        let found = Found::of(&parts.part().bytes()?);
        let (due_in, end_in) =
            (parts.part().optional_ms()?, parts.part().optional_ms()?);
        let this_time =
            Rotated { elements: parts.part().count()?, of: parts.part().count()? };
        let is_paused = found == Found::Paused;
        let next_in = due_in.into_iter().chain(end_in).min();
        let jobs = parts.map(leased).collect::<Result<Vec<_>, _>>()?;
        if let Some(last) = jobs.last() {
            self.last_claimed.store(last.token.len(), Ordering::Relaxed);
        }
        Ok(Claimed {
            now,
            jobs,
            wake: WakeConditions {
                next_in: next_in.filter(|_| !is_paused),
                on_arrival: found == Found::Empty,
                is_paused,
            },
            is_due: !is_paused && due_in.is_some_and(|due_in| due_in.is_zero()),
            is_changed: found == Found::Jobs,
            goes_on: found == Found::Jobs
                || found == Found::More && rotated.goes_on(this_time),
        })
    }

    async fn call_claim(&self, ask: &ClaimRequest) -> Result<Reply, Error> {
        let nonce = self.conn.environment().random().text(12);
        let call = self
            .bookkeeping
            .call(&SCRIPTS.claim)
            .arg(ask.worker.as_str())
            .arg(nonce)
            .arg(millis(ask.lease))
            .arg(ask.max.get())
            .arg(ROTATIONS)
            .arg(entry::bare_header())
            .arg(ClaimRequest::MAX_BYTES)
            .arg(self.few_waiting());
        call.run(&self.conn, Operation::Claim).await
    }

    /// Returns the maximum number of waiting jobs for which a claim searches the head,
    /// if each of them is as large as the job that was claimed last. It is at least one,
    /// because a single waiting job is nearly always at the head, which is read first.
    fn few_waiting(&self) -> usize {
        let last = self.last_claimed.load(Ordering::Relaxed);
        (FEW_BYTES / last.max(1)).clamp(1, FEW)
    }

    /// Ends leased jobs, as many as one script call handles.
    pub(crate) async fn finish(
        &self,
        receipts: &[&Receipt],
        Finish { how, needs_side_records }: Finish,
    ) -> Result<Step, Error> {
        let word = match self.finish_by {
            FinishBy::Mark => "mark",
            FinishBy::Lrem => "remove",
        };
        let needs_entry = needs_side_records || self.finish_by == FinishBy::Lrem;
        let call = self.bookkeeping.call(&SCRIPTS.finish).arg(how.total()).arg(word);
        let mut call = call.arg(Bookkeeping::memory_ms());
        for receipt in receipts {
            if needs_entry {
                call.push_arg(&receipt.token()[..]);
            } else {
                call.push_arg(&without_entry(receipt.token())[..]);
            }
        }
        let reply = call.run(&self.conn, Operation::Settle).await?;
        Step::whole(receipts.len(), reply)
    }

    /// Releases these leases. Returns how many were running, and how many of those
    /// recovery must process.
    pub(crate) async fn release_worker(
        &self,
        tokens: &[Vec<u8>],
    ) -> Result<(u64, u64), Error> {
        let keys = &self.keys;
        let mut call =
            SCRIPTS.release_worker.keys(&[&keys.marks, &keys.bookkeeping.wake]);
        tokens.iter().for_each(|token| call.push_arg(&token[..]));
        let reply = call.run(&self.conn, Operation::ReleaseWorker).await?;
        let mut counts = reply.parts()?;
        Ok((counts.part().count()?, counts.part().count()?))
    }

    /// Recovers a page of overdue leases, starting with the element after `passed`.
    /// Returns where the next call must start; 0 starts again at the tail.
    pub(crate) async fn recover(
        &self,
        what: Recovery,
        page: u32,
        passed: u64,
    ) -> Result<(Recovered, u64), Error> {
        let (operation, word) = match what {
            Recovery::All => (Operation::Recover, "all"),
            Recovery::Left => (Operation::ReleaseWorker, "left"),
        };
        let call = self
            .bookkeeping
            .call(&SCRIPTS.recover)
            .arg(page)
            .arg(ROTATIONS)
            .arg(passed);
        let reply = call.arg(word).run(&self.conn, operation).await?;
        let mut parts = reply.parts()?;
        Ok((Bookkeeping::recovered(parts.part())?, parts.part().count()?))
    }

    /// Passes a notification on to the notifier of another worker.
    pub(crate) async fn pass_on(&self) -> Result<(), Error> {
        let call = SCRIPTS.pass_on.keys(&[&self.keys.bookkeeping.wake]);
        call.run(&self.conn, Operation::Claim).await.map(drop)
    }
}

/// Reads a leased job from its element. The entry in the element already counts the
/// running delivery.
fn leased(element: Reply) -> Result<LeasedJob, Error> {
    let token = element.bytes()?;
    let entry = InProcess::read(&token).map_or_else(Bytes::new, |parts| parts.entry);
    Ok(LeasedJob { token, entry, attempt: Attempt::InEntry })
}
