//! Claims: leases ready jobs, and turns their entries into deliveries.

use async_trait::async_trait;
use relq_core::{ClaimRequest, Delivery, Error, error::Operation};
use relq_redis::{
    PartialEffect,
    bookkeeping::{self, Bookkeeping, ClaimPattern, ClaimRound, Failure, WaitHint},
};

use crate::{
    Mode, ProcessingListQueue,
    lease::Lease,
    moves::Move,
    scripts::{Asked, Claimed, How},
    session::{Session, Site},
};

#[async_trait]
impl ClaimPattern for ProcessingListQueue {
    type WaitHint = WaitHint;
    type ClaimState = How;

    fn bookkeeping(&self) -> &Bookkeeping {
        &self.store.bookkeeping
    }

    async fn look(
        &self,
        ask: &ClaimRequest,
        how: &mut How,
        partial: &mut PartialEffect,
    ) -> Result<ClaimRound<WaitHint>, Error> {
        let claimed = self.store.claim(&self.asked(ask, *how)).await;
        let claimed = claimed.map_err(|error| partial.whole(error))?;
        let hint = WaitHint { is_paused: claimed.is_paused, due_in: claimed.due_in };
        let goes_on = !claimed.elements.is_empty();
        let deliveries = self.deliver(ask, claimed, partial).await?;
        let is_due = hint.is_due();
        Ok(ClaimRound { deliveries, hint, is_due, goes_on })
    }
}

impl ProcessingListQueue {
    pub(crate) fn asked(&self, ask: &ClaimRequest, how: How) -> Asked {
        let (session, site) = match self.mode {
            Mode::Shared => (Session::shared(&ask.worker), Site::Shared),
            Mode::PerWorker => {
                let session = Session::own(&ask.worker, &self.nonce);
                (session.clone(), Site::Own(session))
            }
        };
        let max = ask.max.min(self.store.bookkeeping.max_jobs_per_step()).get();
        Asked { session, site, lease: ask.lease, max, how }
    }

    /// Ends a claim's blocking move. If the move brings a job at that moment, the claim
    /// takes the job if it has no other, and puts it back if it has.
    pub(crate) async fn stop_waiting(
        &self,
        ask: &ClaimRequest,
        moving: Option<Move>,
        deliveries: Vec<Delivery>,
        partial: &mut PartialEffect,
    ) -> Result<Vec<Delivery>, Error> {
        let Some(moving) = moving else { return Ok(deliveries) };
        let Some(claimed) = moving.end().await else { return Ok(deliveries) };
        if deliveries.is_empty() {
            return self.deliver(ask, claimed, partial).await;
        }
        self.waits.movers.give_back(claimed).await;
        Ok(deliveries)
    }

    /// Turns leased elements into deliveries. Jobs that have expired or cannot be read
    /// are leased by now, so none is lost on its way to the dead letters (R3, R17).
    pub(crate) async fn deliver(
        &self,
        ask: &ClaimRequest,
        claimed: Claimed,
        partial: &mut PartialEffect,
    ) -> Result<Vec<Delivery>, Error> {
        if !claimed.elements.is_empty() {
            *partial = PartialEffect::Begun;
        }
        let mut deliveries = Vec::with_capacity(claimed.elements.len());
        let mut failures = Vec::new();
        for element in claimed.elements {
            let entry =
                Lease::parse(&element).map(|lease| lease.entry).unwrap_or_default();
            match bookkeeping::read(&entry, claimed.now) {
                Ok(entry) => {
                    deliveries.push(bookkeeping::delivery(entry, element, ask.lease));
                }
                Err(bookkeeping::Undeliverable { why, error }) => {
                    let lease = element.into();
                    failures.push(Failure { lease, after: None, why, error });
                }
            }
        }
        if !failures.is_empty() {
            let buried = self.bury(&failures).await;
            bookkeeping::bury_beside(&deliveries, buried)
                .map_err(|error| partial.whole(error))?;
        }
        Ok(deliveries)
    }

    async fn bury(&self, failures: &[Failure<'_>]) -> Result<(), Error> {
        let mut steps = self.store.bookkeeping.steps();
        while let Some(page) = steps.next_page(failures, |failure| failure.lease.len())
        {
            steps.add(page.len(), self.store.fail(Operation::Claim, page).await)?;
        }
        Ok(())
    }
}
