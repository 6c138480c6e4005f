//! Settle: applies a worker's reports on jobs that it holds. The receipt's token
//! decides which lease a report is for (R7).

use std::time::Duration;

use relq_core::{Disposition, Settlement, limits::kept_error, outcome::Settled};

use crate::batch::maintenance;
use crate::call::Call;
use crate::failure::Failure;
use crate::followers::Moved;
use crate::give_back::{find_held, give_back};
use crate::lease::job_of;
use crate::statements::{Again, End, Ended, Held};
use crate::store::Store;

/// How many leases are found by one query, and how many jobs are removed by one statement.
const FOUND_AT_ONCE: usize = 64;

/// A step of a settlement, with no more settlements than one transaction may apply (R21). A
/// settlement that moves many followers ends the step, and the caller takes another one for
/// those behind it.
pub(crate) struct Settle {
    pub(crate) done: Vec<Settlement>,
}

/// Returns how many bytes the result of a settlement takes. An error takes few, because it is
/// cut.
pub(crate) fn result_bytes(settlement: &Settlement) -> usize {
    match &settlement.disposition {
        Disposition::DoneWith { result } => result.len(),
        _ => 0,
    }
}

impl Call for Settle {
    type Answer = Vec<Settled>;

    fn weight(&self) -> usize {
        self.done.len()
    }

    fn bytes(&self) -> usize {
        self.done.iter().map(result_bytes).sum()
    }

    fn run(&self, store: &Store<'_>) -> Result<Vec<Settled>, Failure> {
        let (mut tally, mut answers) = (Tally::default(), Vec::new());
        for some in self.done.chunks(FOUND_AT_ONCE) {
            answers.extend(settle_some(store, some, &mut tally)?);
            if tally.moved.is_page(store) {
                break;
            }
        }
        store.count_ended(tally.ended)?;
        tally.moved.cancel_orphans(store)?;
        if tally.pieces {
            maintenance::after_pieces_ended(store)?;
        }
        Ok(answers)
    }
}

/// Counts what the settlements of one call have done.
#[derive(Default)]
struct Tally {
    /// How many jobs they ended, and how.
    ended: Ended,
    /// The keys of ended jobs, which are removed together after all settlements.
    to_remove: Vec<i64>,
    /// Whether any of the settled jobs is a piece of a batch.
    pieces: bool,
    /// How many followers of these jobs were released or orphaned.
    moved: Moved,
}

/// Applies settlements, or the first of them: see [`Settle`].
fn settle_some(
    store: &Store<'_>,
    some: &[Settlement],
    tally: &mut Tally,
) -> Result<Vec<Settled>, Failure> {
    let mut held = find_held(store, some.iter().map(|one| &one.receipt))?;
    let mut answers = Vec::new();
    for settlement in some {
        let token = settlement.receipt.token();
        // If the list has a receipt twice, its lease is lost the second time.
        let settled = match (job_of(token), held.remove(&**token)) {
            (Some(job), Some(held)) => {
                settle_one(store, settlement, job, &held, tally)?;
                Settled::Applied
            }
            _ => Settled::LeaseLost,
        };
        answers.push(settled);
        if tally.moved.is_page(store) {
            break;
        }
    }
    store.remove_jobs(&std::mem::take(&mut tally.to_remove))?;
    Ok(answers)
}

fn settle_one(
    store: &Store<'_>,
    settlement: &Settlement,
    job: i64,
    held: &Held,
    tally: &mut Tally,
) -> Result<(), Failure> {
    tally.pieces |= held.batch.is_some();
    match &settlement.disposition {
        Disposition::Done => finish(store, job, held, &[], tally),
        Disposition::DoneWith { result } => finish(store, job, held, result, tally),
        Disposition::Discard => {
            tally.ended.discarded += 1;
            tally.to_remove.push(job);
            tally.moved.add(store.remember(&held.remembered, End::Discarded)?);
            Ok(())
        }
        Disposition::Retry { after, error } => {
            retry(store, job, held, *after, kept_error(error))
        }
        Disposition::Postpone { after } => {
            make_waiting(store, job, *after, Again::Postponed)
        }
        Disposition::Dead { error } => {
            store.bury(job, kept_error(error), Some(kept_error(error)))
        }
        Disposition::GiveBack => give_back(store, job),
    }
}

fn finish(
    store: &Store<'_>,
    job: i64,
    held: &Held,
    result: &[u8],
    tally: &mut Tally,
) -> Result<(), Failure> {
    tally.ended.finished += 1;
    tally.to_remove.push(job);
    if let Some(batch) = held.batch {
        store.count_done(batch)?;
    }
    tally.moved.add(store.remember(&held.remembered, End::Done { result })?);
    Ok(())
}

fn retry(
    store: &Store<'_>,
    job: i64,
    held: &Held,
    after: Duration,
    error: &str,
) -> Result<(), Failure> {
    if held.attempt >= held.max_attempts {
        let Held { attempt, max_attempts, .. } = held;
        let reason =
            format!("out of attempts: attempt {attempt} of {max_attempts}: {error}");
        return store.bury(job, &reason, Some(error));
    }
    make_waiting(store, job, after, Again::Failed { error })
}

/// Schedules a leased job or, if `after` is zero, makes it ready at the back.
fn make_waiting(
    store: &Store<'_>,
    job: i64,
    after: Duration,
    again: Again<'_>,
) -> Result<(), Failure> {
    store.wake_claims();
    if after.is_zero() {
        store.promote_due(store.page)?;
        return store.retry_now(job, again);
    }
    store.retry_at(job, store.ms_after(after), again)
}
