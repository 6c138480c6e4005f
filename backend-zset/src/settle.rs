//! Carrying out verdicts: one call for each kind of them, all in one round trip.

use std::time::Duration;

use futures_util::future::{BoxFuture, try_join_all};
use queue_core::{Error, Operation, Settled, Settlement, Verdict};

use crate::{
    lease,
    scripts::{Ended, Failure, Store},
};

/// The longest error that is kept with a job, in bytes.
const MAX_ERROR: usize = 4096;

/// What has to be called for a settlement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Kind {
    Finish(Ended),
    FinishTied(Ended),
    Fail,
    GiveBack,
}

impl Kind {
    const ALL: [Self; 6] = [
        Self::Finish(Ended::Finished),
        Self::FinishTied(Ended::Finished),
        Self::Finish(Ended::Discarded),
        Self::FinishTied(Ended::Discarded),
        Self::Fail,
        Self::GiveBack,
    ];

    fn of(settlement: &Settlement) -> Self {
        let finish = if lease::has_ties(&settlement.receipt) {
            Self::FinishTied
        } else {
            Self::Finish
        };
        match settlement.verdict {
            Verdict::Done => finish(Ended::Finished),
            Verdict::Discard => finish(Ended::Discarded),
            Verdict::Retry { .. } | Verdict::Dead { .. } => Self::Fail,
            Verdict::GiveBack => Self::GiveBack,
        }
    }
}

/// Carries out verdicts, up to a batch of them, and answers for each.
pub(crate) async fn settle(
    store: &Store,
    done: &[Settlement],
) -> Result<Vec<Settled>, Error> {
    let mut calls: Vec<BoxFuture<'_, Result<Vec<usize>, Error>>> = Vec::new();
    for kind in Kind::ALL {
        let is_of_kind = |at: &usize| Kind::of(&done[*at]) == kind;
        let positions: Vec<_> = (0..done.len()).filter(is_of_kind).collect();
        if !positions.is_empty() {
            calls.push(Box::pin(carry_out(store, kind, done, positions)));
        }
    }
    let mut answers = vec![Settled::Applied; done.len()];
    for lost in try_join_all(calls).await?.into_iter().flatten() {
        answers[lost] = Settled::LeaseLost;
    }
    Ok(answers)
}

/// Settles those at `positions`, all of one kind; answers the positions of the lost.
async fn carry_out(
    store: &Store,
    kind: Kind,
    done: &[Settlement],
    positions: Vec<usize>,
) -> Result<Vec<usize>, Error> {
    let group = positions.iter().map(|at| &done[*at]);
    let receipts = || group.clone().map(|settlement| &settlement.receipt);
    let lost = match kind {
        Kind::Finish(how) => store.finish(&receipts().collect::<Vec<_>>(), how).await?,
        Kind::FinishTied(how) => {
            store.finish_tied(&receipts().collect::<Vec<_>>(), how).await?
        }
        Kind::Fail => {
            let failures: Vec<_> = group.filter_map(failure).collect();
            store.fail(Operation::Settle, &failures).await?
        }
        Kind::GiveBack => {
            let leases: Vec<_> = receipts().map(lease::member).collect();
            store.give_back(Operation::Settle, &leases).await?
        }
    };
    Ok(lost.into_iter().filter_map(|at| positions.get(at).copied()).collect())
}

fn failure(settlement: &Settlement) -> Option<Failure<'_>> {
    let (after, error): (Option<Duration>, _) = match &settlement.verdict {
        Verdict::Retry { after, error } => (Some(*after), error),
        Verdict::Dead { error } => (None, error),
        Verdict::Done | Verdict::Discard | Verdict::GiveBack => return None,
    };
    let lease = lease::member(&settlement.receipt);
    Some(Failure { lease, after, why: 'f', error: cut(error) })
}

fn cut(error: &str) -> &str {
    &error[..error.floor_char_boundary(MAX_ERROR)]
}
