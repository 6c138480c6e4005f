//! The actors that the fault of a run does not hit, and the calls that they make.

use std::{num::NonZeroU32, ops::Deref, sync::Arc, time::Duration};

use relq_core::{
    ClaimRequest, NewJob, Queue, ReliableQueueExt as _, WorkerId,
    environment::Environment, outcome::Pushed,
};

use tokio::sync::watch;

use super::BoxFuture;
use crate::{
    Subject,
    harness::runtime::Panics,
    proxy::{Endpoint, FaultProxy, VirtualClock},
    spec::class::Class,
};

/// The length of every lease in a scenario.
pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// How long nothing may pass the proxy before a claim counts as one that waits without the
/// server.
const QUIET: Duration = Duration::from_millis(10);

/// How far a run advances the clock so that every lease and every delay ends.
pub(crate) const PAST_ALL: Duration = Duration::from_secs(31);

/// The fault proxy, and the actors that all runs share. The store is emptied before
/// each run.
pub(crate) struct Actors {
    pub(crate) proxy: FaultProxy,
    pub(crate) environment: Environment,
    pub(crate) subject: Arc<dyn Subject>,
    pub(crate) survivors: Survivors,
    /// Records the panics on the threads of the victim and of the survivors.
    pub(crate) panics: Panics,
}

/// The actors that no fault hits, and the clock of the store. They prepare the store,
/// take over after the fault, and read what the checks need.
pub(crate) struct Survivors {
    pub(crate) clock: VirtualClock,
    /// The actor that prepares the store, recovers and drains. No fault ever hits it.
    pub(crate) healthy: HealthyActor,
    /// An actor on the second queue of the store, which may receive completion jobs of
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
    /// The promises of the backend, by the classes that it declares.
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
            // Errors are ignored here, because the checks of the run find a broken
            // backend.
            drop(healthy.recover(page).await);
        }
    }
}

/// Futures that tell the other actors of a scenario how far the victim has come.
pub(crate) struct VictimObserver<'a> {
    /// Completes once the victim's claim waits at the store.
    pub(crate) held: BoxFuture<'a, ()>,
    /// Completes once the victim is dead.
    pub(crate) gone: BoxFuture<'a, ()>,
    /// Ends a fault that would also hit other actors, such as a full memory. The other
    /// actors must await it before they make calls.
    pub(crate) room: BoxFuture<'a, ()>,
    /// Whether the clock may be advanced when the victim is idle. The other actors say so:
    /// a claim must still wait when they push.
    pub(crate) time_passes: watch::Sender<bool>,
}

impl<'a> VictimObserver<'a> {
    pub(crate) fn of(
        actors: &'a Actors,
        victim: &'a Endpoint,
        room: BoxFuture<'a, ()>,
        time_passes: watch::Sender<bool>,
    ) -> Self {
        let held = Box::pin(async move {
            tokio::select! {
                () = victim.held() => {}
                () = sleeps(actors) => {}
            }
        });
        Self { held, gone: Box::pin(victim.gone()), room, time_passes }
    }
}

/// Completes once the victim's claim waits without the server, which it does if its wait
/// there fails. A claim sleeps before its wait at the server begins, so the connections
/// must be quiet, too.
async fn sleeps(actors: &Actors) {
    actors.clock.asleep(1).await;
    actors.proxy.quiet(QUIET).await;
}

/// A worker that no fault hits, with its queue.
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
    /// Pushes a job with that payload, and asserts that it is stored.
    pub(crate) async fn store(&self, payload: &'static str) {
        let pushed = self.push_one(NewJob::new(payload)).await;
        let pushed = pushed.expect("the healthy actor can push");
        assert!(matches!(pushed, Pushed::Stored(_)), "{pushed:?}");
    }
}

/// Returns the request of a claim for up to `max` jobs that does not wait.
pub(crate) fn ask(worker: &WorkerId, max: u32) -> ClaimRequest {
    let max = NonZeroU32::new(max).expect("a claim asks for one at least");
    ClaimRequest::new(worker.clone(), LEASE).max(max)
}
