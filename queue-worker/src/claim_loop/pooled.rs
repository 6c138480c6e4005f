//! The claim loop of a worker whose queues share its slots.

use std::{
    future::{Future, pending},
    num::NonZeroU32,
    time::Duration,
};

use futures_lite::future::or;

use super::ClaimLoop;

impl ClaimLoop {
    /// How long a claim waits for a job. While it waits, its slots are not free.
    pub(super) fn claim_wait(&self) -> Duration {
        if self.slots.are_pooled() { Duration::ZERO } else { self.claim_size.wait() }
    }

    /// Waits for a job if the queue is empty, or tries whether a store that failed
    /// replies again. Other queues use the slots meanwhile.
    pub(super) fn call_without_a_slot(&mut self) {
        if self.calls.is_claiming() {
            return;
        }
        if self.claiming.is_failing() {
            let one = NonZeroU32::MIN;
            if self.slots.make_ready(one).is_some() {
                self.calls.claim(self.ask(one), 0, self.now());
            }
        } else if self.is_idle {
            self.calls.wait_for_jobs(self.settings.wait(), self.now());
        }
    }

    /// Completes when the pool has granted the queue a slot, or when it may be time to
    /// give up slots because a call is overdue. Never completes for a worker on one
    /// queue.
    pub(super) fn slot_news(&self) -> impl Future<Output = ()> + use<> {
        let pool = self.slots.pool().cloned();
        let overdue = pool.as_ref().and_then(|_| self.calls.next_overdue());
        let clock = self.settings.environment.clock();
        let now = self.now().steady_time;
        let overdue = overdue.map(|at| clock.sleep(at.saturating_sub(now)));
        async move {
            match (pool, overdue) {
                (Some(pool), Some(overdue)) => or(pool.granted(), overdue).await,
                (Some(pool), None) => pool.granted().await,
                _ => pending().await,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_lite::future::poll_once;

    use crate::{
        claim_loop::tests::{sharing, wanted},
        slot_pool::Demand,
    };

    /// The queue sleeps until another queue leaves it a slot.
    #[tokio::test]
    async fn a_slot_that_another_queue_leaves_wakes_the_loop() {
        let (mut claim_loop, other) = sharing(1);
        other.report(Demand { running: 1, ..wanted(0) });
        assert_eq!(claim_loop.room(), None, "the slot is in use");
        assert!(poll_once(claim_loop.slot_news()).await.is_none(), "nothing changed");

        other.report(wanted(0));

        assert!(poll_once(claim_loop.slot_news()).await.is_some(), "it is not woken");
    }
}
