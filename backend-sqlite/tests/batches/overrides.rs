//! Overrides of this backend's calls. Each adds an error that another system's batches
//! had.

use std::{
    collections::HashMap,
    sync::{Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use relq_conformance::overrides::{Override, Right};
use relq_core::{
    batch::{Added, BatchId, BatchState, BatchStatus},
    operator::{Page, PeekRequest},
    outcome::Settled,
    *,
};

/// Stores for each claimed piece the id of its batch.
#[derive(Default)]
pub(crate) struct Pieces(Mutex<HashMap<JobId, BatchId>>);

impl Pieces {
    fn learn(&self, claimed: &[Delivery]) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        for one in claimed {
            if let Some(batch) = &one.batch {
                known.insert(one.job().clone(), batch.clone());
            }
        }
    }

    fn of(&self, job: &JobId) -> Option<BatchId> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).get(job).cloned()
    }
}

/// Counts every ack as a finished piece, even an ack that the queue refused.
#[derive(Default)]
pub(crate) struct CountsAcks {
    pieces: Pieces,
    acks: Mutex<HashMap<BatchId, u64>>,
}

#[async_trait]
impl Override for CountsAcks {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let claimed = right.claim(ask).await?;
        self.pieces.learn(&claimed);
        Ok(claimed)
    }

    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        for one in done.iter().filter(|one| one.disposition == Disposition::Done) {
            if let Some(batch) = self.pieces.of(one.receipt.job()) {
                *self.acks.lock().unwrap().entry(batch).or_default() += 1;
            }
        }
        right.settle(done).await
    }

    async fn batch(
        &self,
        right: &Right,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        let mut status = right.batches().batch(batch).await?;
        if let Some(status) = &mut status {
            status.done = self.acks.lock().unwrap().get(batch).copied().unwrap_or(0);
        }
        Ok(status)
    }
}

/// Completes a batch as soon as it has no piece left, although it is open and more
/// pieces may be added.
#[derive(Default)]
pub(crate) struct CompletesWhileOpen(Pieces);

#[async_trait]
impl Override for CompletesWhileOpen {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let claimed = right.claim(ask).await?;
        self.0.learn(&claimed);
        Ok(claimed)
    }

    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let settled = right.settle(done).await?;
        for batch in done.iter().filter_map(|one| self.0.of(one.receipt.job())) {
            let status = right.batches().batch(&batch).await?;
            if status.is_some_and(|it| it.leased + it.waiting == 0) {
                right.batches().seal(&batch).await?;
            }
        }
        Ok(settled)
    }
}

/// Reports a completion only to clients that listen when it happens.
pub(crate) struct TellsListeners;

#[async_trait]
impl Override for TellsListeners {
    async fn wait_batch(
        &self,
        right: &Right,
        batch: &BatchId,
        timeout: Duration,
    ) -> Result<Option<BatchStatus>, Error> {
        let before = right.batches().batch(batch).await?;
        if before.as_ref().is_some_and(|it| it.state.is_completed()) {
            right.environment.clock().sleep(timeout).await;
            return Ok(before);
        }
        right.batches().wait_batch(batch, timeout).await
    }
}

/// Frees the slot of a piece only when the piece is settled. So the slot of a worker
/// that dies stays in use for ever.
#[derive(Default)]
pub(crate) struct LosesSlots {
    pieces: Pieces,
    taken: Mutex<HashMap<BatchId, u64>>,
}

#[async_trait]
impl Override for LosesSlots {
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        let mut kept = Vec::new();
        for one in right.claim(ask).await? {
            let Some(batch) = one.batch.clone() else {
                kept.push(one);
                continue;
            };
            let limit = right.batches().batch(&batch).await?.and_then(|it| it.limit);
            let limit = limit.map_or(u64::MAX, |limit| u64::from(limit.get()));
            let mut taken =
                *self.taken.lock().unwrap().entry(batch.clone()).or_default();
            if taken < limit {
                taken += 1;
                self.taken.lock().unwrap().insert(batch, taken);
                kept.push(one);
            } else {
                let back = Settlement::new(one.receipt.clone(), Disposition::GiveBack);
                right.settle(&[back]).await?;
            }
        }
        self.pieces.learn(&kept);
        Ok(kept)
    }

    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        let settled = right.settle(done).await?;
        for (one, said) in done.iter().zip(&settled) {
            if *said == Settled::Applied
                && let Some(batch) = self.pieces.of(one.receipt.job())
                && let Some(taken) = self.taken.lock().unwrap().get_mut(&batch)
            {
                *taken = taken.saturating_sub(1);
            }
        }
        Ok(settled)
    }
}

/// Splits a call that adds several pieces into one call for each piece.
pub(crate) struct AddsOneByOne;

#[async_trait]
impl Override for AddsOneByOne {
    async fn add(
        &self,
        right: &Right,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error> {
        let mut pushed = Vec::new();
        for piece in pieces {
            let one = std::slice::from_ref(piece);
            match right.batches().add(batch, one, token).await? {
                Added::Stored(one) => pushed.extend(one),
                other => return Ok(other),
            }
        }
        Ok(Added::Stored(pushed))
    }
}

/// Reports a cancelled batch as cancelled, but still delivers its pieces.
pub(crate) struct CancelsInWords;

#[async_trait]
impl Override for CancelsInWords {
    async fn cancel_batch(
        &self,
        right: &Right,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        let mut status = right.batches().seal(batch).await?;
        if let Some(status) = &mut status {
            status.state = BatchState::Cancelling;
        }
        Ok(status)
    }
}

/// Lists the jobs of a page by their age.
pub(crate) struct ListsByAge;

#[async_trait]
impl Override for ListsByAge {
    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        let mut page = right.peek(ask).await?;
        page.jobs.sort_by_key(|job| job.enqueued_at);
        Ok(page)
    }
}
