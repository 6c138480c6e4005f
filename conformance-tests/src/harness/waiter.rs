//! Claims that wait for jobs in the background.

use std::{panic::Location, time::Duration};

use relq_core::Delivery;
use tokio::task::JoinHandle;

use super::{actor::Actor, store::Store};

/// How long a claim waits if nothing wakes it: longer than any wake-up takes.
pub(crate) const WAIT: Duration = Duration::from_secs(30);

/// A claim that waits for jobs in a task of its own.
pub(crate) struct Waiter {
    pub(crate) claim: JoinHandle<Vec<Delivery>>,
    pub(crate) lateness: Duration,
}

impl Waiter {
    /// Starts a claim of up to `max` jobs in a task, and returns once the claim waits.
    /// Does not advance the clock.
    pub(crate) async fn start(store: &Store, actor: &Actor, max: u32) -> Self {
        let (actor, lateness) = (actor.clone(), actor.capabilities().lateness);
        let claim = tokio::spawn(async move { actor.take_waiting(max, WAIT).await });
        store.settled().await;
        Self { claim, lateness }
    }

    /// Starts a task that claims up to `max` jobs as a worker on several queues does: its
    /// claims do not wait, and `wait_for_jobs` waits when a claim finds nothing. Returns once
    /// the task waits. Does not advance the clock.
    pub(crate) async fn start_without_claim(
        store: &Store,
        actor: &Actor,
        max: u32,
    ) -> Self {
        let (actor, lateness) = (actor.clone(), actor.capabilities().lateness);
        let claim = tokio::spawn(async move {
            loop {
                let taken = actor.take(max).await;
                if !taken.is_empty() {
                    return taken;
                }
                actor.wait_for_jobs(WAIT).await.expect("the wait succeeds");
            }
        });
        store.settled().await;
        Self { claim, lateness }
    }

    /// Returns the claimed jobs. Panics if no notification woke the claim, so that it
    /// found the jobs only when it polled by itself.
    #[track_caller]
    pub(crate) fn woken(self, store: &Store) -> impl Future<Output = Vec<Delivery>> {
        let limit = store.wake_limit(self.lateness);
        let (test, woken) = (Location::caller(), store.woken_within(limit, self.claim));
        async move {
            let (taken, took) = woken.await;
            let taken = taken.expect("the claim ends");
            let late = "R21: a waiting claim found its jobs late: it was not woken";
            assert!(took < limit, "{late}, and polled after {took:?} (at {test})");
            assert_ne!(
                taken,
                [],
                "R21: a claim found no job: it was not woken (at {test})"
            );
            taken
        }
    }

    /// Returns the claimed jobs, whether the claim was woken or polled by itself.
    #[track_caller]
    pub(crate) fn looked_again(
        self,
        store: &Store,
    ) -> impl Future<Output = Vec<Delivery>> {
        self.looked_again_after(Duration::ZERO, store)
    }

    /// Returns the claimed jobs, which fall due after `delay`, whether the claim was woken or
    /// polled by itself.
    #[track_caller]
    pub(crate) fn looked_again_after(
        self,
        delay: Duration,
        store: &Store,
    ) -> impl Future<Output = Vec<Delivery>> {
        let limit = delay + self.lateness + store.response_limit();
        let found = store.within(limit, self.claim);
        async move { found.await.0.expect("the claim ends") }
    }
}
