//! Claims, and the conversion of leased jobs into deliveries.

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, Settlement, error::Operation,
};

use super::{RedisQueue, settle::fail_all};
use crate::{
    PartialEffect,
    bookkeeping::{
        self, Bookkeeping, ClaimPattern, ClaimRound, Failure, FinishedAndClaimed,
        Undeliverable,
    },
    entry::{self, Entry},
    pattern::{Attempt, Claimed, LeasedJob, Pattern, WakeConditions},
};

#[async_trait]
impl<P: Pattern> ClaimPattern for RedisQueue<P> {
    type WaitHint = WakeConditions;
    type ClaimState = P::ClaimState;

    fn bookkeeping(&self) -> &Bookkeeping {
        self.pattern.bookkeeping()
    }

    async fn look(
        &self,
        ask: &ClaimRequest,
        state: &mut P::ClaimState,
        parts: &mut PartialEffect,
    ) -> Result<ClaimRound<WakeConditions>, Error> {
        self.pattern.try_claim(ask, state, parts).await
    }

    async fn settle_and_look(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
        parts: &mut PartialEffect,
    ) -> Option<FinishedAndClaimed<WakeConditions>> {
        let is_plain = |one: &Settlement| {
            let token = one.receipt.token();
            one.disposition == Disposition::Done
                && !P::has_side_records(token)
                && !P::has_follow_up(token)
        };
        let most = self.pattern.bookkeeping().max_jobs_per_step().get() as usize;
        if done.is_empty() || done.len() > most || !done.iter().all(is_plain) {
            return None;
        }
        let receipts: Vec<_> = done.iter().map(|one| &one.receipt).collect();
        self.pattern.finish_and_claim(&receipts, ask, parts).await
    }
}

/// Turns the jobs that a claim script leased into deliveries, and buries those that
/// have expired or cannot be read. They are leased by now, so none of them can be lost
/// on its way to the dead letters (R3, R17).
///
/// # Errors
/// The error of burying, as an error of the whole call (`parts`), if there is nothing
/// to deliver.
pub async fn deliver<P: Pattern>(
    pattern: &P,
    ask: &ClaimRequest,
    claimed: Result<Claimed, Error>,
    parts: &mut PartialEffect,
) -> Result<ClaimRound<WakeConditions>, Error> {
    let claimed = claimed.map_err(|error| parts.whole(error))?;
    let Claimed { now, jobs, wake, is_due, is_changed, goes_on } = claimed;
    if is_changed {
        *parts = PartialEffect::Begun;
    }
    let mut deliveries = Vec::with_capacity(jobs.len());
    let mut failures = Vec::new();
    for LeasedJob { token, entry, attempt } in jobs {
        match bookkeeping::read(&entry, now) {
            Ok(mut entry) => {
                entry.attempt = number(attempt, &entry);
                deliveries.push(bookkeeping::delivery(entry, token, ask.lease));
            }
            Err(Undeliverable { why, error }) => {
                let lease = P::lease(&token, &entry::id_of(&entry));
                failures.push(Failure { lease, after: None, why, error });
            }
        }
    }
    bury(pattern, &failures, &deliveries).await.map_err(|error| parts.whole(error))?;
    Ok(ClaimRound { deliveries, hint: wake, is_due, goes_on })
}

async fn bury(
    pattern: &impl Pattern,
    failures: &[Failure<'_>],
    deliveries: &[Delivery],
) -> Result<(), Error> {
    if failures.is_empty() {
        return Ok(());
    }
    let buried = fail_all(pattern, Operation::Claim, failures).await;
    follow_up(pattern, failures).await;
    bookkeeping::bury_beside(deliveries, buried)
}

async fn follow_up<P: Pattern>(pattern: &P, failures: &[Failure<'_>]) {
    if failures.iter().any(|failure| P::has_follow_up(&failure.lease)) {
        pattern.follow_up(Operation::Claim).await;
    }
}

fn number(attempt: Attempt, entry: &Entry) -> u16 {
    match attempt {
        Attempt::InEntry => entry.attempt,
        Attempt::AfterEntry => entry.attempt.saturating_add(1),
        Attempt::Number(number) => number,
    }
}
