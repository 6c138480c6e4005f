//! The actors of a run that nothing happens to, and what they do.

use std::{num::NonZeroU32, ops::Deref, sync::Arc, time::Duration};

use relq_core::{
    ClaimRequest, Delivery, Disposition, Environment, NewJob, Pushed, Queue,
    Settlement, WorkerId,
};

use super::BoxFuture;
use crate::{
    Subject,
    class::Class,
    fault::{Endpoint, FaultProxy, VirtualClock},
    runtime::Panics,
};

/// Every lease that a scenario takes.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// Every delay and retry that a scenario asks for: over before its leases are.
pub(crate) const DELAY: Duration = Duration::from_secs(10);

/// How far the clock goes for every lease and delay to be over.
pub(crate) const PAST_ALL: Duration = Duration::from_secs(31);

/// The other queue of the store.
pub(crate) const ELSEWHERE: &str = "elsewhere";

/// The stage that all runs share, each with a store emptied for it.
pub(crate) struct Actors {
    pub(crate) proxy: FaultProxy,
    pub(crate) environment: Environment,
    pub(crate) subject: Arc<dyn Subject>,
    pub(crate) survivors: Survivors,
    /// Of whoever acts, or prepares and takes over.
    pub(crate) panics: Panics,
}

/// Who prepares, takes over and judges, and the time of the store.
pub(crate) struct Survivors {
    pub(crate) clock: VirtualClock,
    /// Prepares, recovers and drains; never hit by a fault.
    pub(crate) healthy: HealthyActor,
    /// The same on the queue that completions of batches may go to, if the backend
    /// supports batches.
    pub(crate) elsewhere: Option<HealthyActor>,
}

impl Deref for Actors {
    type Target = Survivors;

    fn deref(&self) -> &Survivors {
        &self.survivors
    }
}

impl Survivors {
    /// What the backend promises by its classes.
    pub(crate) fn class(&self) -> Class {
        Class::of(self.healthy.capabilities())
    }
}

impl Survivors {
    /// Lets the hands write again whose the queues are that were emptied under them,
    /// which their recovery does (R25).
    pub(crate) async fn write_again(&self) {
        let page = NonZeroU32::new(1).expect("not zero");
        for healthy in [&self.healthy].into_iter().chain(&self.elsewhere) {
            // What a broken backend refuses is for the checks to judge.
            drop(healthy.recover(page).await);
        }
    }
}

/// What those who do something meanwhile see of the victim.
pub(crate) struct VictimObserver<'a> {
    /// Completes once its claim waits at the store.
    pub(crate) held: BoxFuture<'a, ()>,
    /// Completes once it is dead.
    pub(crate) gone: BoxFuture<'a, ()>,
    /// Ends what would hinder others, too: to be awaited before they do anything.
    pub(crate) room: BoxFuture<'a, ()>,
}

impl<'a> VictimObserver<'a> {
    pub(crate) fn of(victim: &'a Endpoint, room: BoxFuture<'a, ()>) -> Self {
        Self { held: Box::pin(victim.held()), gone: Box::pin(victim.gone()), room }
    }
}

/// A worker that nothing happens to.
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
    /// Pushes jobs that are stored, all of them.
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

    /// Claims as another worker: what a victim holds when it begins to act.
    pub(crate) async fn claim_for(&self, worker: &WorkerId, max: u32) -> Vec<Delivery> {
        let taken =
            self.claim(&ask(worker, max)).await.expect("the healthy actor can claim");
        assert_eq!(taken.len(), max as usize, "the scenario has these jobs ready");
        taken
    }

    /// Says `disposition` of jobs that are held.
    pub(crate) async fn say(&self, of: &[Delivery], disposition: &Disposition) {
        let done: Vec<_> = of
            .iter()
            .map(|one| Settlement::new(one.receipt.clone(), disposition.clone()))
            .collect();
        self.settle(&done).await.expect("the healthy actor can settle");
    }
}

/// Asks for `max` jobs.
pub(crate) fn ask(worker: &WorkerId, max: u32) -> ClaimRequest {
    let max = NonZeroU32::new(max).expect("a claim asks for one at least");
    ClaimRequest::new(worker.clone(), LEASE).max(max)
}
