//! Builds the parts of a worker on one queue, runs them, and shuts them down.

use std::{pin::pin, sync::Arc};

use relq_core::{
    Error, QueueName, ReliableQueue, WorkerId, capabilities::LeaseScope,
    environment::Environment,
};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;
use tracing::Instrument as _;

use crate::{
    WorkerError,
    attempt::Program,
    calls::Calls,
    claim_loop::{ClaimLoop, ClaimLoopParts},
    drain::{Drain, WorkerRelease},
    handler::AnyHandler,
    heartbeat::{Beats, Heartbeat},
    held::Held,
    readiness::Readiness,
    reaper::Reaper,
    settings::Settings,
    shutdown::{Requests, Shutdown},
    slot_pool::PoolMember,
    slots::Slots,
};

/// A worker on one queue, or the part of a worker on several that serves one of them.
pub(crate) struct Run {
    pub(crate) queue: Arc<dyn ReliableQueue>,
    /// The name of the queue and its place in the pool of slots, if the worker serves
    /// several queues.
    pub(crate) place: Option<(QueueName, PoolMember)>,
    pub(crate) worker: WorkerId,
    pub(crate) settings: Settings,
}

/// The parts of a run that all queues of a worker share.
pub(crate) struct Shared {
    pub(crate) handler: AnyHandler,
    pub(crate) readiness: Readiness,
    pub(crate) held: Arc<Held>,
    pub(crate) heartbeat: Heartbeat,
    pub(crate) shutdown: Shutdown,
    /// Cancelled when an error ends the run of a queue, before that queue is drained.
    pub(crate) failed: CancellationToken,
}

impl Run {
    /// Runs the only queue of a worker.
    pub(crate) async fn until_asked(
        self,
        handler: AnyHandler,
        requests: Requests,
    ) -> Result<(), WorkerError> {
        let shutdown = Shutdown::listen(requests)?;
        let held = Arc::new(self.held());
        let started = Heartbeat::start(vec![self.beats(&held)]).await;
        let heartbeat = started.map_err(WorkerError::Heartbeat)?.remove(0);
        let (readiness, failed) = (Readiness::default(), CancellationToken::new());
        let shared = Shared { handler, readiness, held, heartbeat, shutdown, failed };
        self.serve(shared).await
    }

    /// Serves the queue until a request, or an error that a retry cannot help.
    pub(crate) async fn serve(mut self, shared: Shared) -> Result<(), WorkerError> {
        let Shared { handler, readiness, held, .. } = shared;
        let Shared { mut heartbeat, mut shutdown, failed, .. } = shared;
        self.settings.observers = self.settings.observers.of_new_queue();
        let mut reaping = self.reaping();
        let mut claim_loop = self.claim_loop((handler, readiness), held);

        // If only claims or recoveries are refused, the leases are extended as before, and
        // running handlers may finish work that can still be settled.
        let (served, is_graceful) = tokio::select! {
            biased;
            served = claim_loop.serve(&mut shutdown) => {
                let is_graceful = matches!(served, Ok(()) | Err(WorkerError::Claim(_)));
                (served, is_graceful)
            }
            error = heartbeat.died() => (Err(error), false),
            ended = reaping.join_next() => match ended {
                Some(Ok(error)) => (Err(WorkerError::Store(error)), true),
                _ => (Err(WorkerError::Died("reaper")), false),
            },
        };
        if !is_graceful {
            shutdown.halt();
        }
        if served.is_err() {
            failed.cancel();
        }

        self.drained(&mut shutdown, &mut claim_loop, &mut heartbeat).await;
        reaping.shutdown().await;
        heartbeat.stop().await;
        served.map_err(|error| self.named(error))
    }

    /// Adds the name of the queue to an error of its store, if the worker serves several
    /// queues.
    fn named(self, error: WorkerError) -> WorkerError {
        match (self.place, error) {
            (
                Some((queue, _)),
                source @ (WorkerError::Claim(_) | WorkerError::Store(_)),
            ) => WorkerError::Queue { queue, source: Box::new(source) },
            (_, error) => error,
        }
    }

    /// Shuts the worker down. If the heartbeat thread has died, the worker stops hard:
    /// no heartbeat would extend the leases of running handlers, and the handlers would
    /// not learn that their leases are lost (R6).
    async fn drained(
        &self,
        shutdown: &mut Shutdown,
        claim_loop: &mut ClaimLoop,
        heartbeat: &mut Heartbeat,
    ) {
        let heartbeat_died = CancellationToken::new();
        shutdown.also_halt_on(heartbeat_died.clone().cancelled_owned());
        let mut drain = self.drain(shutdown, heartbeat.reports_end());
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
    pub(crate) fn held(&self) -> Held {
        let is_shared = self.queue.capabilities().lease_scope == LeaseScope::Worker;
        let always = is_shared.then_some(self.settings.lease);
        Held::new(always, self.settings.lease_clock.elapsed())
    }

    /// The heartbeats of the queue, which are not running yet.
    pub(crate) fn beats(&self, held: &Arc<Held>) -> Beats {
        let (queue, worker) = (Arc::clone(&self.queue), self.worker.clone());
        let held = Arc::clone(held);
        Beats::new(queue, worker, held, &self.settings)
    }

    fn reaping(&self) -> JoinSet<Error> {
        let reaper = Reaper::new(Arc::clone(&self.queue), &self.settings);
        let mut reaping = JoinSet::new();
        reaping.spawn(reaper.run().in_current_span());
        reaping
    }

    fn claim_loop(
        &self,
        (handler, readiness): (AnyHandler, Readiness),
        held: Arc<Held>,
    ) -> ClaimLoop {
        let program = Program { handler, settings: self.settings.clone() };
        let (queue, pool) = self.place.clone().unzip();
        ClaimLoop::new(ClaimLoopParts {
            slots: Slots::new(program, pool, readiness),
            calls: Calls::new(Arc::clone(&self.queue)),
            settings: self.settings.clone(),
            worker: self.worker.clone(),
            queue,
            held,
        })
    }

    fn drain<'a>(
        &self,
        shutdown: &'a mut Shutdown,
        reports_end: CancellationToken,
    ) -> Drain<'a> {
        Drain {
            shutdown,
            reports_end,
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

#[cfg(test)]
mod tests {
    use std::{future::pending, thread, time::Duration};

    use relq_core::environment::{Clock, OsRandomness, SystemClock, Timestamp};
    use relq_memory::MemoryStore;

    use super::*;
    use crate::{
        Failure, JobContext, backoff::Sleep, claim_loop::tests::job,
        lease_clock::LeaseClock,
    };

    /// A clock that panics when the heartbeat thread reads it.
    #[derive(Debug)]
    struct NotForHeartbeats;

    impl Clock for NotForHeartbeats {
        fn now(&self) -> Timestamp {
            SystemClock.now()
        }

        fn elapsed(&self) -> Duration {
            let is_heartbeat = thread::current().name() == Some("relq-heartbeat");
            assert!(!is_heartbeat, "as the test wants it");
            SystemClock.elapsed()
        }

        fn sleep(&self, duration: Duration) -> Sleep {
            SystemClock.sleep(duration)
        }
    }

    fn run(environment: Environment) -> Run {
        let name = QueueName::new("q").unwrap();
        let queue = MemoryStore::default().open(name, Environment::default());
        let lease_clock = LeaseClock::new(environment.clone());
        Run {
            queue: Arc::new(queue),
            place: None,
            worker: WorkerId::new("worker").unwrap(),
            settings: Settings { environment, lease_clock, ..Settings::default() },
        }
    }

    /// A worker with a lease for each job sends no heartbeat while it holds none.
    #[test]
    fn an_idle_worker_without_a_shared_lease_sends_no_heartbeat() {
        let next_beat = run(Environment::default()).held().next_beat();

        assert_eq!(next_beat, None, "when a heartbeat is due");
    }

    /// R6: without heartbeats a worker does not learn that leases are lost. So its handlers
    /// do not get the grace time if the heartbeat thread dies during a shutdown.
    #[tokio::test]
    async fn a_shutdown_is_hard_when_the_heartbeat_dies() {
        let clock = Arc::new(NotForHeartbeats);
        let run = run(Environment::new(clock, Arc::new(OsRandomness)));
        let held = Arc::new(run.held());
        let started = Heartbeat::start(vec![run.beats(&held)]).await;
        let mut heartbeat = started.unwrap().remove(0);
        let mut shutdown = Shutdown::listen(Requests::default()).unwrap();
        let handler = Arc::new(|_: JobContext| pending::<Result<(), Failure>>());
        let mut claim_loop = run.claim_loop((handler, Readiness::default()), held);
        claim_loop.slots.start(job("runs"));

        let limit = run.settings.grace / 2;
        let drained = run.drained(&mut shutdown, &mut claim_loop, &mut heartbeat);

        tokio::time::timeout(limit, drained).await.expect("handlers run on unwatched");
    }
}
