//! Claims that wait in the background.

use std::time::Duration;

use relq_core::Delivery;
use tokio::task::JoinHandle;

use super::{actor::Actor, store::Store, times::WOKEN};

/// Longer than any wake-up takes. A claim that is not woken waits this long.
pub(crate) const WAIT: Duration = Duration::from_secs(30);

/// A claim that waits for jobs.
pub(crate) struct Waiter {
    pub(crate) claim: JoinHandle<Vec<Delivery>>,
    pub(crate) lateness: Duration,
}

impl Waiter {
    /// Starts a claim that waits. Time does not pass for it yet.
    pub(crate) async fn start(store: &Store, actor: &Actor, max: u32) -> Self {
        let (actor, lateness) = (actor.clone(), actor.capabilities().lateness);
        let claim = tokio::spawn(async move { actor.take_waiting(max, WAIT).await });
        store.settled().await;
        Self { claim, lateness }
    }

    /// Returns the jobs; the claim must have been woken, and not have polled by itself.
    pub(crate) async fn woken(self, store: &Store) -> Vec<Delivery> {
        let limit = store.wake_limit(self.lateness);
        let (taken, took) = store.within(limit, self.claim).await;
        let taken = taken.expect("the claim ends");
        assert!(took < limit, "it was not woken, and polled after {took:?}");
        assert_ne!(taken, [], "it was not woken");
        taken
    }

    /// Returns the jobs, which the claim may have found by polling by itself.
    pub(crate) async fn looked_again(self, store: &Store) -> Vec<Delivery> {
        let limit = self.lateness + WOKEN;
        let (taken, _) = store.within(limit, self.claim).await;
        taken.expect("the claim ends")
    }
}
