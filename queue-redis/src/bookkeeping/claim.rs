//! Claiming, the same for every pattern: look for ready jobs, promote due jobs, look
//! again, wait.
//!
//! ```text
//!  look ---- found ------------------------------------------> deliver
//!   ^ ^        '- and jobs are due: promote them as well
//!   | '------- nothing, and jobs are due: promote them
//!   '--------- nothing, and a second look may find jobs at once
//!              nothing: wait, until the claim's time limit
//! ```

use std::{num::NonZeroU32, time::Duration};

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, ReliableQueue, Settlement,
    error::Operation, outcome::SettledAndClaimed,
};

use super::{Bookkeeping, Step};
use crate::PartialEffect;

/// The result of one attempt to lease ready jobs.
#[derive(Debug)]
pub struct ClaimRound<O> {
    /// The jobs that this attempt leased, ready to be returned to the worker.
    pub deliveries: Vec<Delivery>,
    /// The data from which an empty claim decides how long to wait.
    pub hint: O,
    /// Whether scheduled jobs are due and must be promoted.
    pub is_due: bool,
    /// Whether an immediate second attempt may find jobs although this one found none.
    pub goes_on: bool,
}

/// The data from which an empty claim decides how long to wait, in most patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitHint {
    /// Whether the queue is paused.
    pub is_paused: bool,
    /// How long until the next scheduled job is due; `None` if no job is scheduled.
    pub due_in: Option<Duration>,
}

impl WaitHint {
    /// Whether scheduled jobs are due and must be promoted.
    pub fn is_due(&self) -> bool {
        self.due_in.is_some_and(|due_in| due_in.is_zero())
    }
}

/// A pattern in which a claim can lease ready jobs and promote due jobs.
#[async_trait]
pub trait ClaimPattern: ReliableQueue {
    /// The data from which an empty claim decides how long to wait.
    type WaitHint: Send;

    /// The state that one claim keeps from one call of [`look`](Self::look) to the
    /// next.
    type ClaimState: Default + Send;

    /// The bookkeeping of the queue, which stores its scheduled jobs.
    fn bookkeeping(&self) -> &Bookkeeping;

    /// Leases ready jobs, up to the requested number, without waiting.
    ///
    /// # Errors
    /// The errors of the commands, as errors of the whole call: `partial` has the
    /// effect of the earlier commands, and `look` adds its own.
    async fn look(
        &self,
        ask: &ClaimRequest,
        state: &mut Self::ClaimState,
        partial: &mut PartialEffect,
    ) -> Result<ClaimRound<Self::WaitHint>, Error>;

    /// Settles jobs and leases ready jobs by one command. Returns `None`, and leaves
    /// the queue unchanged, if the pattern has no such command for these settlements.
    async fn settle_and_look(
        &self,
        _done: &[Settlement],
        _ask: &ClaimRequest,
        _partial: &mut PartialEffect,
    ) -> Option<FinishedAndClaimed<Self::WaitHint>> {
        None
    }
}

/// The two results of one command that ended jobs and then leased ready jobs.
#[derive(Debug)]
pub struct FinishedAndClaimed<O> {
    /// The result of ending the jobs.
    pub finished: Result<Step, Error>,
    /// The result of the look, as [`ClaimPattern::look`] returns it.
    pub claimed: Result<ClaimRound<O>, Error>,
}

/// A pattern whose claims can wait until a job is ready.
#[async_trait]
pub trait WaitingPattern: ClaimPattern {
    /// Waits until jobs may be ready to claim, or until `limit` has passed. Returns whether
    /// a claim may find jobs now.
    async fn wait(&self, hint: Self::WaitHint, limit: Duration) -> bool;

    /// Keeps the hint of a claim that must not wait, for the next
    /// [`wait_for_jobs`](ReliableQueue::wait_for_jobs). If that wait went through a
    /// pause that has ended, wakes another waiting claim.
    async fn keep_hint(&self, hint: Self::WaitHint);

    /// Whether the queue was paused when the claim found no job.
    fn is_paused(hint: &Self::WaitHint) -> bool;

    /// Leaves a signal in the store that wakes another waiting claim.
    async fn wake_another(&self);
}

/// Claims without waiting, step by step, and promotes due jobs if there are any.
///
/// # Errors
/// The errors of the commands, as errors of the whole call: `partial` has the effect of
/// the earlier commands, and `claim_now` adds its own. If an earlier step has leased
/// jobs, `claim_now` returns these jobs and no error.
pub async fn claim_now<P: ClaimPattern>(
    pattern: &P,
    ask: &ClaimRequest,
    state: &mut P::ClaimState,
    partial: &mut PartialEffect,
) -> Result<(Vec<Delivery>, P::WaitHint), Error> {
    claim_after(pattern, ask, None, state, partial).await
}

/// The type of the result of [`ClaimPattern::look`].
type Looked<P> = Result<ClaimRound<<P as ClaimPattern>::WaitHint>, Error>;

/// Returns how many jobs the claim wants in all, and the request for its first step,
/// which is limited to the jobs of one script call.
fn first_step<P: ClaimPattern>(
    pattern: &P,
    ask: &ClaimRequest,
) -> (NonZeroU32, ClaimRequest) {
    let step = pattern.bookkeeping().max_jobs_per_step();
    let wanted = ask.max.min(pattern.capabilities().limits.max_jobs_per_call);
    (wanted, ask.clone().max(wanted.min(step)))
}

/// Claims as [`claim_now`] does. If the caller has already called `look`, it passes the
/// result as the first look.
async fn claim_after<P: ClaimPattern>(
    pattern: &P,
    ask: &ClaimRequest,
    looked: Option<Looked<P>>,
    state: &mut P::ClaimState,
    partial: &mut PartialEffect,
) -> Result<(Vec<Delivery>, P::WaitHint), Error> {
    let (step, (wanted, first)) =
        (pattern.bookkeeping().max_jobs_per_step(), first_step(pattern, ask));
    let claimed = claim_step(pattern, &first, looked, state, partial).await;
    let (mut deliveries, hint) = claimed?;
    let mut is_full = deliveries.len() == first.max.get() as usize;
    while is_full && let Some(next) = left_to_claim(&deliveries, wanted) {
        let next = ask.clone().max(next.min(step));
        match claim_step(pattern, &next, None, state, partial).await {
            Ok((more, _)) => {
                is_full = more.len() == next.max.get() as usize;
                let excess = add_within_bytes(&mut deliveries, more);
                if !excess.is_empty() {
                    give_back(pattern, &excess).await;
                    break;
                }
            }
            Err(error) => {
                tracing::debug!(%error, "a claim ends with the jobs that it has");
                break;
            }
        }
    }
    Ok((deliveries, hint))
}

/// Returns how many more jobs a claim that has these `deliveries` may lease: as many as
/// fit into [`ClaimRequest::MAX_BYTES`] if none is larger than the largest so far.
/// Returns `None` if none fits, or if the claim has `wanted` jobs.
fn left_to_claim(deliveries: &[Delivery], wanted: NonZeroU32) -> Option<NonZeroU32> {
    let largest = deliveries.iter().map(Delivery::total_bytes).max()?.max(1);
    let left = (wanted.get() as usize).checked_sub(deliveries.len())?;
    let fit = ClaimRequest::MAX_BYTES.checked_sub(bytes_of(deliveries))? / largest;
    u32::try_from(left.min(fit)).ok().and_then(NonZeroU32::new)
}

fn bytes_of(deliveries: &[Delivery]) -> usize {
    deliveries.iter().map(Delivery::total_bytes).sum()
}

/// Adds the jobs of a later step to a claim, while all jobs together fit into
/// [`ClaimRequest::MAX_BYTES`]. Returns the jobs that do not fit.
fn add_within_bytes(
    deliveries: &mut Vec<Delivery>,
    mut more: Vec<Delivery>,
) -> Vec<Delivery> {
    let mut bytes = bytes_of(deliveries);
    let exceeds = |delivery: &Delivery| {
        bytes += delivery.total_bytes();
        bytes > ClaimRequest::MAX_BYTES
    };
    let fit = more.iter().position(exceeds).unwrap_or(more.len());
    let excess = more.split_off(fit);
    deliveries.extend(more);
    excess
}

/// Gives back the jobs that one claim has leased beyond its limit. A failure is only
/// logged, so that the other jobs are still delivered: these jobs are then served again
/// when their leases end, as those of a claim whose reply was lost.
async fn give_back<P: ClaimPattern>(pattern: &P, excess: &[Delivery]) {
    let give_back = |delivery: &Delivery| {
        Settlement::new(delivery.receipt.clone(), Disposition::GiveBack)
    };
    let settlements: Vec<_> = excess.iter().map(give_back).collect();
    if let Err(error) = pattern.settle(&settlements).await {
        tracing::warn!(
            %error,
            jobs = excess.len(),
            "the jobs that a claim took beyond its limit of bytes were not given back; \
             they are served again when their leases end",
        );
    }
}

/// One step of a claim: repeats [`look`](ClaimPattern::look) until some jobs are
/// leased, or until none are ready.
async fn claim_step<P: ClaimPattern>(
    pattern: &P,
    ask: &ClaimRequest,
    mut looked: Option<Looked<P>>,
    state: &mut P::ClaimState,
    partial: &mut PartialEffect,
) -> Result<(Vec<Delivery>, P::WaitHint), Error> {
    let most = ask.max.get();
    loop {
        let round = match looked.take() {
            Some(looked) => looked,
            None => pattern.look(ask, state, partial).await,
        };
        let ClaimRound { deliveries, hint, is_due, goes_on } = round?;
        if !deliveries.is_empty() {
            if is_due {
                promote_beside(pattern.bookkeeping(), most).await;
            }
            return Ok((deliveries, hint));
        }
        if is_due {
            partial
                .then(pattern.bookkeeping().promote(Operation::Claim, most).await)?;
        } else if !goes_on {
            return Ok((deliveries, hint));
        }
    }
}

/// Promotes due jobs for a claim that already leased some. A failure here is only
/// logged, so that the leased jobs are still delivered: the next claim finds the same
/// jobs due.
async fn promote_beside(bookkeeping: &Bookkeeping, page: u32) {
    if let Err(error) = bookkeeping.promote(Operation::Claim, page).await {
        tracing::debug!(%error, "due jobs were not promoted; the next claim retries");
    }
}

/// Claims jobs. While no job is ready, waits for at most the requested time.
///
/// # Errors
/// [`Error::Invalid`] for an invalid request, or the errors of the commands.
pub async fn claim<P: WaitingPattern>(
    pattern: &P,
    ask: &ClaimRequest,
) -> Result<Vec<Delivery>, Error> {
    pattern.capabilities().check_claim(ask)?;
    let clock = pattern.bookkeeping().conn.environment().clock();
    let deadline = clock.elapsed() + ask.wait;
    let (mut partial, mut was_paused) = (PartialEffect::default(), false);
    loop {
        let mut state = P::ClaimState::default();
        let claimed = claim_now(pattern, ask, &mut state, &mut partial).await?;
        let (deliveries, hint) = claimed;
        // A resume leaves one signal, which woke only this claim. The other claims that
        // waited through the pause do not listen for arrivals yet, so wake the next
        // one.
        if was_paused && !P::is_paused(&hint) {
            pattern.wake_another().await;
        }
        was_paused = P::is_paused(&hint);
        let left = deadline.saturating_sub(clock.elapsed());
        if ask.wait.is_zero() {
            pattern.keep_hint(hint).await;
            return Ok(deliveries);
        }
        if !deliveries.is_empty() || left.is_zero() {
            return Ok(deliveries);
        }
        if !pattern.wait(hint, left).await {
            return Ok(Vec::new());
        }
    }
}

/// Settles and claims: by one command, if the pattern has one for these settlements.
/// Otherwise both are written to the connection together, the settlements first, so that
/// they share a round trip. Settlements that take several commands then end behind the
/// claim. So a claim that may find one of their jobs is sent when all are settled.
pub async fn settle_and_claim<P: ClaimPattern>(
    pattern: &P,
    done: &[Settlement],
    ask: &ClaimRequest,
) -> SettledAndClaimed {
    if let Some(both) = settle_and_claim_at_once(pattern, done, ask).await {
        return both;
    }
    let claim = async {
        pattern.capabilities().check_claim(ask)?;
        let (mut state, mut partial) =
            (P::ClaimState::default(), PartialEffect::default());
        let claimed = claim_now(pattern, ask, &mut state, &mut partial).await;
        claimed.map(|(deliveries, _)| deliveries)
    };
    let makes_ready = |one: &Settlement| one.disposition.may_make_ready();
    let (settled, claimed) = if done.iter().any(makes_ready) {
        (pattern.settle(done).await, claim.await)
    } else {
        tokio::join!(biased; pattern.settle(done), claim)
    };
    SettledAndClaimed { settled, claimed }
}

/// Settles and claims by one command. Returns `None`, and leaves the queue unchanged,
/// if a request is invalid or if one command is not enough.
async fn settle_and_claim_at_once<P: ClaimPattern>(
    pattern: &P,
    done: &[Settlement],
    ask: &ClaimRequest,
) -> Option<SettledAndClaimed> {
    pattern.capabilities().check_claim(ask).ok()?;
    // If too few replicas had the settlements, the call would fail together with a claim
    // that leased jobs.
    if pattern.bookkeeping().conn.waits_for_replicas() {
        return None;
    }
    let (mut state, mut partial) = (P::ClaimState::default(), PartialEffect::default());
    let (_, first) = first_step(pattern, ask);
    let both = pattern.settle_and_look(done, &first, &mut partial).await?;
    let settled = both.finished.map(|step| step.answers(done.len()));
    let looked = Some(both.claimed);
    let claimed = claim_after(pattern, ask, looked, &mut state, &mut partial).await;
    Some(SettledAndClaimed {
        settled,
        claimed: claimed.map(|(deliveries, _)| deliveries),
    })
}
