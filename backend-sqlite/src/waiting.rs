//! Waiting for jobs: as a part of a claim, or after a claim that found none.

use std::{
    pin::pin,
    sync::{MutexGuard, PoisonError},
    time::Duration,
};

use relq_core::{ClaimRequest, Delivery};
use tokio::sync::watch;

use crate::claim::{Claimed, Poll, Pulse};
use crate::failure::Failure;
use crate::queue::SqliteQueue;

/// A claim that found no job. The wait that follows it continues from here, so that it
/// misses nothing that came between the two.
#[derive(Debug)]
pub(crate) struct EmptyClaim {
    /// Receives the notifications that were sent since the claim began.
    notifier: watch::Receiver<u64>,
    pulse: Pulse,
}

impl SqliteQueue {
    /// Repeats a claim until it gets jobs, or until the wait time of the request is
    /// over.
    pub(crate) async fn claim_patiently(
        &self,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Failure> {
        let clock = self.environment().clock();
        let deadline = clock.elapsed().saturating_add(ask.wait);
        let mut notifier = self.listen();
        loop {
            notifier.mark_unchanged();
            let first = self.db_thread().call(self.claim_call(ask)).await?;
            let claimed = self.claim_rest(ask, first).await?;
            let left = deadline.saturating_sub(clock.elapsed());
            if !claimed.deliveries.is_empty() || left.is_zero() {
                self.note_empty(notifier, &claimed);
                return Ok(claimed.deliveries);
            }
            let woken = notifier.changed();
            self.wait_for_change(woken, claimed.pulse, left).await?;
        }
    }

    /// Keeps a claim that found no job for the wait that may follow it. `notifier` listens
    /// since the claim began.
    pub(crate) fn note_empty(&self, notifier: watch::Receiver<u64>, claimed: &Claimed) {
        if claimed.deliveries.is_empty() {
            *self.empty_claim() = Some(EmptyClaim { notifier, pulse: claimed.pulse });
        }
    }

    fn empty_claim(&self) -> MutexGuard<'_, Option<EmptyClaim>> {
        self.empty_claim.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Waits until a claim may find a job, or until `limit` has passed. If no claim of this
    /// handle has found the queue empty since the last wait, this returns after the poll
    /// interval at the latest, because nothing is known of the file.
    pub(crate) async fn wait_after_empty_claim(
        &self,
        limit: Duration,
    ) -> Result<(), Failure> {
        let clock = self.environment().clock();
        let known = self.empty_claim().take();
        let Some(EmptyClaim { mut notifier, pulse }) = known else {
            let mut notifier = self.listen();
            tokio::select! {
                _ = notifier.changed() => {}
                () = clock.sleep(limit.min(self.poll_interval())) => {}
            }
            return Ok(());
        };
        self.wait_for_change(notifier.changed(), pulse, limit).await
    }

    /// Waits until a call should look again: when it is woken, after another connection
    /// wrote the file, when a scheduled job is due, or when the wait time is over.
    pub(crate) async fn wait_for_change<T>(
        &self,
        woken: impl Future<Output = T> + Send,
        pulse: Pulse,
        wait: Duration,
    ) -> Result<(), Failure> {
        let mut woken = pin!(woken);
        let clock = self.environment().clock();
        let end = clock.elapsed().saturating_add(wait);
        loop {
            let mut left = end.saturating_sub(clock.elapsed());
            // The due time is compared with the time of day at each poll: that clock may be
            // set, and goes on while the machine is suspended.
            if let Some(due) = pulse.due {
                left = left.min(due.since(clock.now()));
            }
            if left.is_zero() {
                return Ok(());
            }
            tokio::select! {
                _ = &mut woken => return Ok(()),
                () = clock.sleep(left.min(self.poll_interval())) => {}
            }
            if self.db_thread().call(Poll).await? != pulse.version {
                return Ok(());
            }
        }
    }
}
