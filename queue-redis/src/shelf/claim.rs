//! Claiming, as every pattern does it: look, promote what is due, look again, wait.
//!
//! ```text
//!  look ---- found ------------------------------------------> deliver
//!   ^ ^        '- and something is due: promote it beside
//!   | '------- nothing, and something is due: promote it
//!   '--------- nothing, and another look may find what this one did not
//!              nothing: wait, until the claim's own time is over
//! ```

use std::time::Duration;

use async_trait::async_trait;
use queue_core::{
    ClaimRequest, Delivery, Error, Operation, ReliableQueue, Settlement, Turn,
};

use super::Shelf;
use crate::Parts;

/// What one look at the ready jobs came to.
#[derive(Debug)]
pub struct Round<O> {
    /// What it leased.
    pub deliveries: Vec<Delivery>,
    /// What it knows of the time to come.
    pub outlook: O,
    /// Whether there are scheduled jobs to be promoted now.
    pub is_due: bool,
    /// Whether, without deliveries, another look may find some at once.
    pub goes_on: bool,
}

/// What an empty claim knows of the time to come, in most patterns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Outlook {
    /// Whether claims are to find nothing.
    pub is_paused: bool,
    /// When the next scheduled job is due.
    pub due_in: Option<Duration>,
}

impl Outlook {
    /// Whether there are scheduled jobs to be promoted now.
    pub fn is_due(&self) -> bool {
        self.due_in.is_some_and(|due_in| due_in.is_zero())
    }
}

/// A pattern whose ready jobs can be looked at.
#[async_trait]
pub trait Looks: ReliableQueue {
    /// What a claim that found nothing knows of the time to come.
    type Outlook: Send;

    /// What one claim keeps in mind from look to look.
    type Course: Default + Send;

    /// Where its scheduled jobs are.
    fn shelf(&self) -> &Shelf;

    /// Leases what is ready, up to what is asked for, without waiting.
    ///
    /// # Errors
    /// Those of the commands, for all of `parts`, to which it adds what it changes.
    async fn look(
        &self,
        ask: &ClaimRequest,
        course: &mut Self::Course,
        parts: &mut Parts,
    ) -> Result<Round<Self::Outlook>, Error>;
}

/// One that an idle claim can wait at.
#[async_trait]
pub trait Waits: Looks {
    /// Waits until there may be something to claim, or `limit` is over.
    async fn wait(&self, outlook: Self::Outlook, limit: Duration);
}

/// Claims without waiting, promoting what is due on the way.
///
/// # Errors
/// Those of the commands, for all of `parts`, to which it adds what it changes.
pub async fn claim_now<P: Looks>(
    pattern: &P,
    ask: &ClaimRequest,
    course: &mut P::Course,
    parts: &mut Parts,
) -> Result<(Vec<Delivery>, P::Outlook), Error> {
    let most = ask.max.min(pattern.capabilities().limits.max_batch).get();
    loop {
        let round = pattern.look(ask, course, parts).await?;
        let Round { deliveries, outlook, is_due, goes_on } = round;
        if !deliveries.is_empty() {
            if is_due {
                promote_beside(pattern.shelf(), most).await;
            }
            return Ok((deliveries, outlook));
        }
        if is_due {
            parts.then(pattern.shelf().promote(Operation::Claim, most).await)?;
        } else if !goes_on {
            return Ok((deliveries, outlook));
        }
    }
}

/// Promotes while deliveries are on their way already. Should it fail, they are not to
/// be lost for it: the next claim finds the same jobs due.
async fn promote_beside(shelf: &Shelf, page: u32) {
    if let Err(error) = shelf.promote(Operation::Claim, page).await {
        tracing::debug!(%error, "due jobs are left to the next claim");
    }
}

/// Claims, and waits for as long as is asked for while nothing is ready.
///
/// # Errors
/// [`Error::Invalid`], or those of the commands.
pub async fn claim<P: Waits>(
    pattern: &P,
    ask: &ClaimRequest,
) -> Result<Vec<Delivery>, Error> {
    pattern.capabilities().check_claim(ask)?;
    let clock = pattern.shelf().conn.environment().clock();
    let deadline = clock.elapsed() + ask.wait;
    let mut parts = Parts::default();
    loop {
        let mut course = P::Course::default();
        let claimed = claim_now(pattern, ask, &mut course, &mut parts).await?;
        let (deliveries, outlook) = claimed;
        let left = deadline.saturating_sub(clock.elapsed());
        if !deliveries.is_empty() || left.is_zero() {
            return Ok(deliveries);
        }
        pattern.wait(outlook, left).await;
    }
}

/// Settles and claims. Both are written to the connection together, the settlements
/// first, so that they share a round trip. Only when the server forgot a script since it
/// was loaded may the claim come first.
pub async fn turn<P: Looks>(
    pattern: &P,
    done: &[Settlement],
    ask: &ClaimRequest,
) -> Turn {
    let claim = async {
        pattern.capabilities().check_claim(ask)?;
        let (mut course, mut parts) = (P::Course::default(), Parts::default());
        let claimed = claim_now(pattern, ask, &mut course, &mut parts).await;
        claimed.map(|(deliveries, _)| deliveries)
    };
    let (settled, claimed) = tokio::join!(biased; pattern.settle(done), claim);
    Turn { settled, claimed }
}
