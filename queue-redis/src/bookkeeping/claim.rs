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
    ClaimRequest, Delivery, Error, ReliableQueue, Settlement, error::Operation,
    outcome::SettledAndClaimed,
};

use super::Bookkeeping;
use crate::PartialEffect;

/// The result of one look at the ready jobs.
#[derive(Debug)]
pub struct ClaimRound<O> {
    /// The jobs that the look leased.
    pub deliveries: Vec<Delivery>,
    /// The data with which an empty claim decides how long to wait.
    pub hint: O,
    /// Whether scheduled jobs are due and must be promoted.
    pub is_due: bool,
    /// Whether an immediate second look may find jobs although this one found none.
    pub goes_on: bool,
}

/// The data with which an empty claim decides how long to wait, in most patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WaitHint {
    /// Whether the queue is paused.
    pub is_paused: bool,
    /// When the next scheduled job is due.
    pub due_in: Option<Duration>,
}

impl WaitHint {
    /// Whether scheduled jobs are due and must be promoted.
    pub fn is_due(&self) -> bool {
        self.due_in.is_some_and(|due_in| due_in.is_zero())
    }
}

/// A pattern whose ready jobs a claim can look at.
#[async_trait]
pub trait ClaimPattern: ReliableQueue {
    /// The data with which an empty claim decides how long to wait.
    type WaitHint: Send;

    /// The state that one claim keeps from look to look.
    type ClaimState: Default + Send;

    /// The bookkeeping, which has the pattern's scheduled jobs.
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
}

/// A pattern on which an idle claim can wait.
#[async_trait]
pub trait WaitingPattern: ClaimPattern {
    /// Waits until there may be something to claim, or until `limit` has passed.
    async fn wait(&self, hint: Self::WaitHint, limit: Duration);

    /// Whether the queue was paused.
    fn is_paused(hint: &Self::WaitHint) -> bool;

    /// Leaves a signal for another waiting claim.
    async fn wake_another(&self);
}

/// Claims without waiting, step by step. Promotes due jobs on the way.
///
/// # Errors
/// The errors of the commands, as errors of the whole call: `partial` has the effect of
/// the earlier commands, and `claim_now` adds its own. After a step that leased jobs
/// there is no error: they are returned.
pub async fn claim_now<P: ClaimPattern>(
    pattern: &P,
    ask: &ClaimRequest,
    state: &mut P::ClaimState,
    partial: &mut PartialEffect,
) -> Result<(Vec<Delivery>, P::WaitHint), Error> {
    let step = pattern.bookkeeping().max_jobs_per_step();
    let wanted = ask.max.min(pattern.capabilities().limits.max_jobs_per_call);
    let first = ask.clone().max(wanted.min(step));
    let (mut deliveries, hint) = claim_step(pattern, &first, state, partial).await?;
    let mut is_full = deliveries.len() == first.max.get() as usize;
    while is_full && let Some(next) = left_to_claim(&deliveries, wanted) {
        let next = ask.clone().max(next.min(step));
        match claim_step(pattern, &next, state, partial).await {
            Ok((more, _)) => {
                is_full = more.len() == next.max.get() as usize;
                deliveries.extend(more);
            }
            Err(error) => {
                tracing::debug!(%error, "a claim ends with the jobs that it has");
                break;
            }
        }
    }
    Ok((deliveries, hint))
}

/// How many jobs a claim that has these may lease yet. `None` if it has all that it
/// wants, or payloads of [`ClaimRequest::MAX_BYTES`].
fn left_to_claim(deliveries: &[Delivery], wanted: NonZeroU32) -> Option<NonZeroU32> {
    let bytes: usize = deliveries.iter().map(|delivery| delivery.payload.len()).sum();
    let left = (wanted.get() as usize).checked_sub(deliveries.len())?;
    let left = u32::try_from(left).ok().and_then(NonZeroU32::new);
    left.filter(|_| bytes < ClaimRequest::MAX_BYTES)
}

/// One step of a claim: looks at ready jobs until some are leased, or until there are
/// none.
async fn claim_step<P: ClaimPattern>(
    pattern: &P,
    ask: &ClaimRequest,
    state: &mut P::ClaimState,
    partial: &mut PartialEffect,
) -> Result<(Vec<Delivery>, P::WaitHint), Error> {
    let most = ask.max.get();
    loop {
        let round = pattern.look(ask, state, partial).await?;
        let ClaimRound { deliveries, hint, is_due, goes_on } = round;
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

/// Claims. While nothing is ready, waits for at most the requested time.
///
/// # Errors
/// [`Error::Invalid`], or the errors of the commands.
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
        // A resume leaves one signal. All claims that it concerns must hear of it,
        // because they do not listen for arrivals yet.
        if was_paused && !P::is_paused(&hint) {
            pattern.wake_another().await;
        }
        was_paused = P::is_paused(&hint);
        let left = deadline.saturating_sub(clock.elapsed());
        if !deliveries.is_empty() || left.is_zero() {
            return Ok(deliveries);
        }
        pattern.wait(hint, left).await;
    }
}

/// Settles and claims. Both are written to the connection together, the settlements
/// first, so that they share a round trip. The claim can come first only if the server
/// forgot a script after it was loaded.
pub async fn settle_and_claim<P: ClaimPattern>(
    pattern: &P,
    done: &[Settlement],
    ask: &ClaimRequest,
) -> SettledAndClaimed {
    let claim = async {
        pattern.capabilities().check_claim(ask)?;
        let (mut state, mut partial) =
            (P::ClaimState::default(), PartialEffect::default());
        let claimed = claim_now(pattern, ask, &mut state, &mut partial).await;
        claimed.map(|(deliveries, _)| deliveries)
    };
    let (settled, claimed) = tokio::join!(biased; pattern.settle(done), claim);
    SettledAndClaimed { settled, claimed }
}
