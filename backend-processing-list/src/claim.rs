//! From what is ready to deliveries.

use queue_core::{ClaimRequest, Delivery, Error, Operation};
use queue_redis::{
    Parts,
    shelf::{self, Failure},
};

use crate::{
    Mode, ProcessingListQueue,
    lease::Lease,
    moves::Move,
    queue::MAX_BATCH,
    scripts::{Asked, Claimed, How},
    session::{Session, Site},
    wait::Outlook,
};

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

    /// Claims without waiting, promoting what is due on the way. Its errors speak for
    /// all of `parts`, to which it adds what it changes.
    pub(crate) async fn claim_now(
        &self,
        ask: &ClaimRequest,
        how: How,
        parts: &mut Parts,
    ) -> Result<(Vec<Delivery>, Outlook), Error> {
        loop {
            let asked = self.asked(ask, how);
            let claimed = self.store.claim(&asked).await;
            let claimed = claimed.map_err(|error| parts.whole(error))?;
            let outlook =
                Outlook { is_paused: claimed.is_paused, due_in: claimed.due_in };
            let found = claimed.elements.len();
            let deliveries = self.deliver(ask, claimed, parts).await?;
            let is_due = outlook.due_in.is_some_and(|due_in| due_in.is_zero());
            if !deliveries.is_empty() {
                if is_due {
                    self.promote_beside(asked.max).await;
                }
                return Ok((deliveries, outlook));
            }
            if is_due {
                let promoted =
                    self.store.shelf.promote(Operation::Claim, asked.max).await;
                parts.then(promoted)?;
            } else if found == 0 {
                return Ok((deliveries, outlook));
            }
        }
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

    /// Promotes while deliveries are on their way already. Should it fail, they are
    /// not to be lost for it: the next claim finds the same jobs due.
    async fn promote_beside(&self, page: u32) {
        if let Err(error) = self.store.shelf.promote(Operation::Claim, page).await {
            tracing::debug!(%error, "due jobs are left to the next claim");
        }
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
