//! From what is ready to deliveries.

use async_trait::async_trait;
use queue_core::{ClaimRequest, Delivery, Error, Operation};
use queue_redis::{
    Parts,
    shelf::{self, Failure, Looks, Outlook, Round, Shelf},
};

use crate::{
    Mode, ProcessingListQueue,
    lease::Lease,
    moves::Move,
    queue::MAX_BATCH,
    scripts::{Asked, Claimed, How},
    session::{Session, Site},
};

#[async_trait]
impl Looks for ProcessingListQueue {
    type Outlook = Outlook;
    type Course = How;

    fn shelf(&self) -> &Shelf {
        &self.store.shelf
    }

    async fn look(
        &self,
        ask: &ClaimRequest,
        how: &mut How,
        parts: &mut Parts,
    ) -> Result<Round<Outlook>, Error> {
        let claimed = self.store.claim(&self.asked(ask, *how)).await;
        let claimed = claimed.map_err(|error| parts.whole(error))?;
        let outlook = Outlook { is_paused: claimed.is_paused, due_in: claimed.due_in };
        let goes_on = !claimed.elements.is_empty();
        let deliveries = self.deliver(ask, claimed, parts).await?;
        let is_due = outlook.is_due();
        Ok(Round { deliveries, outlook, is_due, goes_on })
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
        let max = ask.max.min(MAX_BATCH).get();
        let nonce = self.store.conn.environment().random().text(12);
        Asked { session, site, lease: ask.lease, max, nonce, how }
    }

    /// Ends a claim's move. What came in the same moment is the claim's if it has
    /// nothing else, and goes back if it has.
    pub(crate) async fn stop_waiting(
        &self,
        ask: &ClaimRequest,
        moving: Option<Move>,
        deliveries: Vec<Delivery>,
        parts: &mut Parts,
    ) -> Result<Vec<Delivery>, Error> {
        let Some(moving) = moving else { return Ok(deliveries) };
        let Some(claimed) = moving.end().await else { return Ok(deliveries) };
        if deliveries.is_empty() {
            return self.deliver(ask, claimed, parts).await;
        }
        self.waits.movers.give_back(claimed).await;
        Ok(deliveries)
    }

    /// Turns leased elements into deliveries. What has expired or cannot be read is
    /// leased by now, so it cannot be lost on its way to the dead letters (R3, R17).
    pub(crate) async fn deliver(
        &self,
        ask: &ClaimRequest,
        claimed: Claimed,
        parts: &mut Parts,
    ) -> Result<Vec<Delivery>, Error> {
        if !claimed.elements.is_empty() {
            *parts = Parts::Begun;
        }
        let mut deliveries = Vec::with_capacity(claimed.elements.len());
        let mut failures = Vec::new();
        for element in claimed.elements {
            let entry =
                Lease::parse(&element).map(|lease| lease.entry).unwrap_or_default();
            match shelf::read(&entry, claimed.now) {
                Ok(entry) => {
                    deliveries.push(shelf::delivery(entry, element, ask.lease));
                }
                Err(shelf::Undeliverable { why, error }) => {
                    let lease = element.into();
                    failures.push(Failure { lease, after: None, why, error });
                }
            }
        }
        if !failures.is_empty() {
            let buried = self.store.fail(Operation::Claim, &failures).await;
            shelf::bury_beside(&deliveries, buried)
                .map_err(|error| parts.whole(error))?;
        }
        Ok(deliveries)
    }
}
