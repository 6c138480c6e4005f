//! Builds the parts of a worker, runs them, and shuts them down.

use std::{pin::pin, sync::Arc};

use relq_core::{
    Error, ReliableQueue, WorkerId, capabilities::LeaseScope, environment::Environment,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    Handler, Summary, WorkerError,
    attempt::Program,
    calls::Calls,
    claim_loop::{ClaimLoop, ClaimLoopParts},
    drain::{Drain, WorkerRelease},
    heartbeat::Heartbeat,
    held::Held,
    lease_clock::LeaseClock,
    reaper::Reaper,
    settings::Settings,
    shutdown::{Requests, Shutdown},
    slots::Slots,
};

pub(crate) struct Run {
    pub(crate) queue: Arc<dyn ReliableQueue>,
    pub(crate) worker: WorkerId,
    pub(crate) settings: Settings,
    pub(crate) clock: LeaseClock,
}

impl Run {
    pub(crate) async fn until_asked<H: Handler>(
        self,
        handler: H,
        requests: Requests,
    ) -> Result<Summary, WorkerError> {
        let mut shutdown = Shutdown::listen(requests)?;
        let held = Arc::new(self.held());
        let mut heartbeat = self.heartbeat(&held).await?;
        let mut reaping = self.reaping();
        let mut claim_loop = self.claim_loop(handler, held);

        let served = tokio::select! {
            biased;
            served = claim_loop.serve(&mut shutdown) => served,
            error = heartbeat.died() => Err(error),
            ended = reaping.join_next() => Err(match ended {
                Some(Ok(error)) => WorkerError::Store(error),
                _ => WorkerError::Died("reaper"),
            }),
        };
        if served.is_err() {
            shutdown.halt();
        }

        self.drained(&mut shutdown, &mut claim_loop, &mut heartbeat).await;
        reaping.shutdown().await;
        heartbeat.stop().await;
        served.map(|()| self.settings.observers.progress.summary())
    }

    /// Shuts the worker down. If the heartbeat thread has died, the worker stops hard:
    /// no heartbeat would extend the leases of running handlers, and the handlers would
    /// not learn that their leases are lost (R6).
    async fn drained<H: Handler>(
        &self,
        shutdown: &mut Shutdown,
        claim_loop: &mut ClaimLoop<H>,
        heartbeat: &mut Heartbeat,
    ) {
        let heartbeat_died = CancellationToken::new();
        shutdown.also_halt_on(heartbeat_died.clone().cancelled_owned());
        let mut drain = self.drain(shutdown);
        let mut drained = pin!(drain.run(claim_loop));
        tokio::select! {
            biased;
            () = &mut drained => return,
            error = heartbeat.died(), if !heartbeat.has_died() => {
                tracing::warn!(%error, "stopping hard, because the heartbeat has ended");
            }
        }
        heartbeat_died.cancel();
        drained.await;
    }

    /// Creates the empty list of held leases. If the backend has one lease for each
    /// worker, the list asks for heartbeats even while the worker is idle.
    fn held(&self) -> Held {
        let is_shared = self.queue.capabilities().lease_scope == LeaseScope::Worker;
        let always = is_shared.then_some(self.settings.lease);
        Held::new(always, self.environment().clock().elapsed())
    }

    async fn heartbeat(&self, held: &Arc<Held>) -> Result<Heartbeat, WorkerError> {
        let queue = Arc::clone(&self.queue);
        let (worker, settings) = (self.worker.clone(), self.settings.clone());
        let clock = self.clock.clone();
        Heartbeat::start(queue, worker, Arc::clone(held), settings, clock)
            .await
            .map_err(WorkerError::Heartbeat)
    }

    fn reaping(&self) -> JoinSet<Error> {
        let reaper = Reaper::new(Arc::clone(&self.queue), &self.settings);
        let mut reaping = JoinSet::new();
        reaping.spawn(reaper.run());
        reaping
    }

    fn claim_loop<H: Handler>(&self, handler: H, held: Arc<Held>) -> ClaimLoop<H> {
        let program = Program { handler, settings: self.settings.clone() };
        ClaimLoop::new(ClaimLoopParts {
            slots: Slots::new(program),
            calls: Calls::new(Arc::clone(&self.queue)),
            settings: self.settings.clone(),
            worker: self.worker.clone(),
            held,
        })
    }

    fn drain<'a>(&self, shutdown: &'a mut Shutdown) -> Drain<'a> {
        Drain {
            shutdown,
            environment: self.environment().clone(),
            release: WorkerRelease {
                queue: Arc::clone(&self.queue),
                worker: self.worker.clone(),
                environment: self.environment().clone(),
                observers: self.settings.observers.clone(),
            },
        }
    }

    fn environment(&self) -> &Environment {
        &self.settings.environment
    }
}
