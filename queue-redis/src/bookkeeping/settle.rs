//! Settlements: one call of a script for each kind of disposition, all in one round
//! trip. Large jobs take several calls of a kind, one after the other.

use std::{
    sync::atomic::{AtomicUsize, Ordering},
    time::Duration,
};

use bytes::Bytes;
use futures_util::future::join_all;
use relq_core::{
    Disposition, Error, Receipt, Settlement, error::Operation, limits::kept_error,
    outcome::Settled,
};

use super::{Failure, Step, Steps};
use crate::{PartialEffect, all_steps};

/// How a job that a settlement removes has ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ended {
    /// The worker reported the job as done.
    Finished,
    /// The worker discarded the job.
    Discarded,
}

impl Ended {
    /// The field of the hash `totals` that counts jobs that ended in this way.
    pub fn total(self) -> &'static str {
        match self {
            Self::Finished => "finished",
            Self::Discarded => "discarded",
        }
    }
}

/// How one call of the finish script ends its jobs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Finish {
    /// How the jobs ended, which selects the total that counts them.
    pub how: Ended,
    /// Whether the jobs may have side records to clean up: a unique key, an id to
    /// remember, an earlier failure.
    pub needs_side_records: bool,
}

/// The word with which a script that ends jobs is told that each lease is followed by the
/// result of its job.
pub const WITH_RESULTS: &str = "results";

/// The kind of script call that a disposition needs. One call handles only jobs of the
/// same kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Finish(Finish),
    FinishWithResult,
    Fail,
    GiveBack,
}

impl Kind {
    const fn finish(how: Ended, needs_side_records: bool) -> Self {
        Self::Finish(Finish { how, needs_side_records })
    }

    const ALL: [Self; 7] = [
        Self::finish(Ended::Finished, false),
        Self::finish(Ended::Finished, true),
        Self::finish(Ended::Discarded, false),
        Self::finish(Ended::Discarded, true),
        Self::FinishWithResult,
        Self::Fail,
        Self::GiveBack,
    ];

    fn of(settlement: &Settlement, has_side_records: bool) -> Self {
        let finish = |how| Self::finish(how, has_side_records);
        match settlement.disposition {
            // A job that keeps its result has side records.
            Disposition::DoneWith { .. } if has_side_records => Self::FinishWithResult,
            Disposition::Done | Disposition::DoneWith { .. } => finish(Ended::Finished),
            Disposition::Discard => finish(Ended::Discarded),
            Disposition::Retry { .. }
            | Disposition::Dead { .. }
            | Disposition::Postpone { .. } => Self::Fail,
            Disposition::GiveBack => Self::GiveBack,
        }
    }
}

/// The script calls that a pattern supplies so that settlements can be applied.
#[async_trait::async_trait]
pub trait Settles: Sync {
    /// Begins to split a call into steps, one script each. No script was sent yet.
    fn steps(&self) -> Steps;

    /// Whether the end of the job must also change records beside it: a unique key, an
    /// id to remember, or the error of an earlier failure.
    fn has_side_records(&self, receipt: &Receipt) -> bool;

    /// Returns the lease that belongs to the receipt, in the form that the pattern's
    /// scripts take.
    fn lease(&self, receipt: &Receipt) -> Vec<u8>;

    /// Removes jobs that have ended, as many as one step handles. The next two
    /// functions also handle as many jobs as fit into one step.
    async fn finish(
        &self,
        finish: Finish,
        receipts: &[&Receipt],
    ) -> Result<Step, Error>;

    /// Removes finished jobs, and stores the result of each if the job keeps it (R29). By
    /// default, for a pattern without results, they are not stored.
    async fn finish_with_results(
        &self,
        jobs: &[(&Receipt, &Bytes)],
    ) -> Result<Step, Error> {
        let finish = Finish { how: Ended::Finished, needs_side_records: true };
        let receipts: Vec<_> = jobs.iter().map(|(receipt, _)| *receipt).collect();
        self.finish(finish, &receipts).await
    }

    /// Schedules, postpones or buries jobs.
    async fn fail(&self, failures: &[Failure<'_>]) -> Result<Step, Error>;

    /// Puts jobs back to the front of the queue without counting the attempt. The job
    /// of the last lease is claimed first.
    async fn give_back(&self, leases: &[Vec<u8>]) -> Result<Step, Error>;
}

/// Applies settlements, at most as many as one call may have. Returns a result for
/// each.
///
/// # Errors
/// The errors of the calls; [`Error::Interrupted`] if one call was refused although
/// another was done.
pub async fn settle(
    on: &impl Settles,
    done: &[Settlement],
) -> Result<Vec<Settled>, Error> {
    settle_counting(on, done, &AtomicUsize::new(0)).await
}

/// Does the same as [`settle`]. The first calls of all kinds share one round trip; the
/// number of further calls is added to `later_calls`.
///
/// # Errors
/// In the same cases as [`settle`].
pub(crate) async fn settle_counting(
    on: &impl Settles,
    done: &[Settlement],
    later_calls: &AtomicUsize,
) -> Result<Vec<Settled>, Error> {
    all_steps(Operation::Settle, settle_all(on, done, later_calls)).await
}

async fn settle_all(
    on: &impl Settles,
    done: &[Settlement],
    later_calls: &AtomicUsize,
) -> Result<Vec<Settled>, Error> {
    let kind = |settlement: &Settlement| {
        Kind::of(settlement, on.has_side_records(&settlement.receipt))
    };
    let kinds: Vec<_> = done.iter().map(kind).collect();
    let calls = Kind::ALL.into_iter().filter_map(|kind| {
        let is_of_kind = |at: &usize| kinds[*at] == kind;
        let positions: Vec<_> = (0..done.len()).filter(is_of_kind).collect();
        (!positions.is_empty())
            .then(|| carry_out(on, kind, (done, positions), later_calls))
    });
    let mut answers = vec![Settled::Applied; done.len()];
    let results = join_all(calls).await;
    let partial = PartialEffect::of(&results);
    for lost in results {
        for at in lost.map_err(|error| partial.whole(error))? {
            answers[at] = Settled::LeaseLost;
        }
    }
    Ok(answers)
}

/// Settles the receipts at `positions`, which are all of one kind, by one script call
/// after another. Returns the positions of the lost leases.
async fn carry_out(
    on: &impl Settles,
    kind: Kind,
    (done, mut positions): (&[Settlement], Vec<usize>),
    later_calls: &AtomicUsize,
) -> Result<Vec<usize>, Error> {
    if kind == Kind::GiveBack {
        // Reverse the order, because the job that is put back last is claimed first.
        positions.reverse();
    }
    let bytes_of = |at: &usize| {
        let result = result(&done[*at]).map_or(0, |(_, result)| result.len());
        done[*at].receipt.token().len() + result
    };
    let mut steps = match kind {
        Kind::Finish(_) | Kind::FinishWithResult => on.steps(),
        Kind::Fail | Kind::GiveBack => on.steps().slow(),
    };
    let mut is_first = true;
    while let Some(page) = steps.next_page(&positions, bytes_of) {
        if !std::mem::replace(&mut is_first, false) {
            later_calls.fetch_add(1, Ordering::Relaxed);
        }
        let step = carry_out_step(on, kind, page.iter().map(|at| &done[*at])).await;
        steps.add(page.len(), step)?;
    }
    let lost = steps.lost().into_iter();
    Ok(lost.filter_map(|at| positions.get(at).copied()).collect())
}

async fn carry_out_step<'a>(
    on: &impl Settles,
    kind: Kind,
    group: impl Iterator<Item = &'a Settlement> + Clone + Send,
) -> Result<Step, Error> {
    let receipts = group.clone().map(|settlement| &settlement.receipt);
    match kind {
        Kind::Finish(finish) => on.finish(finish, &receipts.collect::<Vec<_>>()).await,
        Kind::FinishWithResult => {
            let jobs: Vec<_> = group.filter_map(result).collect();
            on.finish_with_results(&jobs).await
        }
        Kind::Fail => {
            let failures: Vec<_> =
                group.filter_map(|settlement| failure(on, settlement)).collect();
            on.fail(&failures).await
        }
        Kind::GiveBack => {
            let leases: Vec<_> = receipts.map(|receipt| on.lease(receipt)).collect();
            on.give_back(&leases).await
        }
    }
}

fn result(settlement: &Settlement) -> Option<(&Receipt, &Bytes)> {
    match &settlement.disposition {
        Disposition::DoneWith { result } => Some((&settlement.receipt, result)),
        _ => None,
    }
}

fn failure<'a>(on: &impl Settles, settlement: &'a Settlement) -> Option<Failure<'a>> {
    let (after, why, error): (Option<Duration>, _, _) = match &settlement.disposition {
        Disposition::Retry { after, error } => (Some(*after), 'f', kept_error(error)),
        Disposition::Dead { error } => (None, 'f', kept_error(error)),
        Disposition::Postpone { after } => (Some(*after), 'p', ""),
        Disposition::Done
        | Disposition::DoneWith { .. }
        | Disposition::Discard
        | Disposition::GiveBack => return None,
    };
    let lease = on.lease(&settlement.receipt);
    Some(Failure { lease, after, why, error })
}
