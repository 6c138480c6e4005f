//! The actors of a run that no fault hits, and their calls.

use std::{num::NonZeroU32, ops::Deref, sync::Arc, time::Duration};

use relq_core::{
    ClaimRequest, Delivery, Disposition, NewJob, Queue, Settlement, WorkerId,
    environment::Environment, outcome::Pushed,
};

use super::BoxFuture;
use crate::{
    Subject,
    harness::runtime::Panics,
    proxy::{Endpoint, FaultProxy, VirtualClock},
    spec::class::Class,
};

/// The length of every lease in a scenario.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// Every delay and retry in a scenario: it ends before the leases do.
pub(crate) const DELAY: Duration = Duration::from_secs(10);

/// How far the clock is advanced so that every lease and delay has ended.
pub(crate) const PAST_ALL: Duration = Duration::from_secs(31);

/// The name of the other queue of the store.
pub(crate) const ELSEWHERE: &str = "elsewhere";

/// The actors that all runs share. The store is emptied for each run.
pub(crate) struct Actors {
    pub(crate) proxy: FaultProxy,
    pub(crate) environment: Environment,
    pub(crate) subject: Arc<dyn Subject>,
    pub(crate) survivors: Survivors,
    /// The panics of the victim and of the survivors.
    pub(crate) panics: Panics,
}

/// The actors that prepare, take over and judge, and the clock of the store.
pub(crate) struct Survivors {
    pub(crate) clock: VirtualClock,
    /// The actor that prepares the store, recovers and drains. No fault ever hits it.
    pub(crate) healthy: HealthyActor,
    /// The same kind of actor on the other queue, which may receive completions of
    /// batches. `None` if the backend does not support batches.
    pub(crate) elsewhere: Option<HealthyActor>,
}

impl Deref for Actors {
    type Target = Survivors;

    fn deref(&self) -> &Survivors {
        &self.survivors
    }
}

impl Survivors {
    /// The promises of the backend, by its classes.
    pub(crate) fn class(&self) -> Class {
        Class::of(self.healthy.capabilities())
    }
}

impl Survivors {
    /// Makes each healthy actor call `recover` once, so that it writes its marker again
    /// after the store was emptied (R25).
    pub(crate) async fn write_again(&self) {
        let page = NonZeroU32::new(1).expect("not zero");
        for healthy in [&self.healthy].into_iter().chain(&self.elsewhere) {
            // Ignore errors here: the checks judge what a broken backend refuses.
            drop(healthy.recover(page).await);
        }
    }
}

/// The events of a victim for which other actors of a scenario can wait.
pub(crate) struct VictimObserver<'a> {
    /// Completes once the victim's claim waits at the store.
    pub(crate) held: BoxFuture<'a, ()>,
    /// Completes once the victim is dead.
    pub(crate) gone: BoxFuture<'a, ()>,
    /// Ends a fault that would affect other actors too. They must await it before they
    /// act.
    pub(crate) room: BoxFuture<'a, ()>,
}

impl<'a> VictimObserver<'a> {
    pub(crate) fn of(victim: &'a Endpoint, room: BoxFuture<'a, ()>) -> Self {
        Self { held: Box::pin(victim.held()), gone: Box::pin(victim.gone()), room }
    }
}

/// A worker that no fault hits.
pub(crate) struct HealthyActor {
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) worker: WorkerId,
}

impl Deref for HealthyActor {
    type Target = dyn Queue;

    fn deref(&self) -> &Self::Target {
        &*self.queue
    }
}

impl HealthyActor {
    /// Pushes jobs; each of them must be stored.
    pub(crate) async fn store(&self, jobs: &[NewJob]) {
        let pushed = self.push(jobs, None).await.expect("the healthy actor can push");
        assert!(
            pushed.iter().all(|one| matches!(one, Pushed::Stored(_))),
            "{pushed:?}"
        );
    }

    /// Pushes plain jobs.
    pub(crate) async fn store_plain(&self, payloads: &[&'static str]) {
        let jobs: Vec<_> =
            payloads.iter().map(|payload| NewJob::new(*payload)).collect();
        self.store(&jobs).await;
    }

    /// Claims in another worker's name, for the jobs that a victim holds when it
    /// begins.
    pub(crate) async fn claim_for(&self, worker: &WorkerId, max: u32) -> Vec<Delivery> {
        let taken =
            self.claim(&ask(worker, max)).await.expect("the healthy actor can claim");
        assert_eq!(taken.len(), max as usize, "the scenario has these jobs ready");
        taken
    }

    /// Settles jobs that are held with `disposition`.
    pub(crate) async fn say(&self, of: &[Delivery], disposition: &Disposition) {
        let done: Vec<_> = of
            .iter()
            .map(|one| Settlement::new(one.receipt.clone(), disposition.clone()))
            .collect();
        self.settle(&done).await.expect("the healthy actor can settle");
    }
}

/// Requests `max` jobs.
pub(crate) fn ask(worker: &WorkerId, max: u32) -> ClaimRequest {
    let max = NonZeroU32::new(max).expect("a claim asks for one at least");
    ClaimRequest::new(worker.clone(), LEASE).max(max)
}
