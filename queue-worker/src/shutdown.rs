//! How a worker ends: what asks it to, and what it does then.

use std::{future::Future, io, pin::Pin, sync::Arc, time::Duration};

use queue_core::{Environment, ReliableQueue, RetryAdvice, WorkerId};
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::{
    Handler, Progress, WorkerError, claim_loop::ClaimLoop, context::LeaseEnd,
    trouble::Trouble,
};

/// Time that futures get to be dropped once they are cut off. One that still runs
/// then blocks its thread, and its lease is left to run out.
const CUT_OFF_LIMIT: Duration = Duration::from_secs(1);

/// Time that the last settlements, and leaving, get after a hard stop.
const HARD_STOP_LIMIT: Duration = Duration::from_secs(1);

/// Time that leaving gets; what is not given back by then waits for its lease.
const LEAVE_LIMIT: Duration = Duration::from_secs(5);

type Request = Pin<Box<dyn Future<Output = ()> + Send>>;

/// What asks a worker to end, as its builder was told.
#[derive(Default)]
pub(crate) struct Requests {
    pub(crate) stop: Vec<Request>,
    pub(crate) halt: Vec<Request>,
    pub(crate) on_signals: Option<Signals>,
}

/// That SIGINT and SIGTERM are this worker's.
pub(crate) struct Signals;

/// The requests, being listened to; dropping this ends that.
pub(crate) struct Shutdown {
    stop: CancellationToken,
    halt: CancellationToken,
    _listeners: JoinSet<()>,
}

impl Shutdown {
    pub(crate) fn listen(requests: Requests) -> Result<Self, WorkerError> {
        let (stop, halt) = (CancellationToken::new(), CancellationToken::new());
        let mut listeners = JoinSet::new();
        for request in requests.stop {
            fire_after(&mut listeners, request, stop.clone());
        }
        for request in requests.halt {
            fire_after(&mut listeners, request, halt.clone());
        }
        if requests.on_signals.is_some() {
            let mut signals = SignalSource::new().map_err(WorkerError::Signals)?;
            let (stop, halt) = (stop.clone(), halt.clone());
            listeners.spawn(async move {
                signals.next().await;
                tracing::info!("stopping; once more stops hard");
                stop.cancel();
                signals.next().await;
                halt.cancel();
            });
        }
        Ok(Self { stop, halt, _listeners: listeners })
    }

    pub(crate) async fn stop_asked(&self) {
        tokio::select! {
            () = self.stop.cancelled() => {}
            () = self.halt.cancelled() => {}
        }
    }

    async fn halt_asked(&self) {
        self.halt.cancelled().await;
    }

    /// Makes the shutdown a hard one.
    pub(crate) fn halt(&self) {
        self.halt.cancel();
    }

    fn is_halting(&self) -> bool {
        self.halt.is_cancelled()
    }
}

fn fire_after(listeners: &mut JoinSet<()>, request: Request, token: CancellationToken) {
    listeners.spawn(async move {
        request.await;
        token.cancel();
    });
}

/// Ends the worker (R24): handlers get the grace time and are then cut off, what they
/// said is settled, and the rest is given back.
pub(crate) struct Farewell<'a> {
    pub(crate) shutdown: &'a Shutdown,
    pub(crate) queue: Arc<dyn ReliableQueue>,
    pub(crate) worker: WorkerId,
    pub(crate) environment: Environment,
    pub(crate) progress: Progress,
}

impl Farewell<'_> {
    pub(crate) async fn run<H: Handler>(&self, claim_loop: &mut ClaimLoop<H>) {
        let (grace, lease) = (claim_loop.settings.grace, claim_loop.settings.lease);
        claim_loop.stop_claiming();
        self.drain(claim_loop, grace, Patience::UntilHalt).await;
        if !claim_loop.slots.is_empty() {
            claim_loop.slots.cut_off();
            self.drain(claim_loop, CUT_OFF_LIMIT, Patience::ToTheEnd).await;
        }
        let stuck = claim_loop.slots.take_stuck();
        self.drain(claim_loop, lease, Patience::UntilHalt).await;
        if self.shutdown.is_halting() {
            self.drain(claim_loop, HARD_STOP_LIMIT, Patience::ToTheEnd).await;
        }
        claim_loop.give_up();
        if stuck.is_empty() {
            return self.leave().await;
        }
        // To leave would give back what still runs, and it would run twice at once.
        for job in stuck {
            let id = job.id();
            tracing::warn!(%id, "the handler cannot be stopped; its lease runs out");
            self.progress.ended(LeaseEnd::Lost);
        }
    }

    async fn drain<H: Handler>(
        &self,
        claim_loop: &mut ClaimLoop<H>,
        limit: Duration,
        patience: Patience,
    ) {
        tokio::select! {
            biased;
            () = claim_loop.drain() => {}
            () = self.environment.clock().sleep(limit) => {}
            () = self.shutdown.halt_asked(), if patience == Patience::UntilHalt => {}
        }
    }

    async fn leave(&self) {
        let limit =
            if self.shutdown.is_halting() { HARD_STOP_LIMIT } else { LEAVE_LIMIT };
        tokio::select! {
            biased;
            () = self.keep_leaving() => {}
            () = self.environment.clock().sleep(limit) => {
                tracing::warn!("could not leave; what is held waits for its lease");
            }
        }
    }

    async fn keep_leaving(&self) {
        let mut trouble = Trouble::new("leaving", self.environment.clone());
        loop {
            match self.queue.leave(&self.worker).await {
                Ok(released) => return self.progress.left(released.jobs),
                Err(error) if error.retry_advice() == RetryAdvice::Never => {
                    tracing::warn!(error = error.full_message(), "cannot leave");
                    return;
                }
                Err(error) => trouble.failed(&error),
            };
            trouble.pause_over().await;
        }
    }
}

/// Whether a hard stop ends a phase of the shutdown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Patience {
    UntilHalt,
    ToTheEnd,
}

#[cfg(unix)]
struct SignalSource {
    interrupt: tokio::signal::unix::Signal,
    terminate: tokio::signal::unix::Signal,
}

#[cfg(unix)]
impl SignalSource {
    fn new() -> io::Result<Self> {
        use tokio::signal::unix::{SignalKind, signal};
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
        })
    }

    async fn next(&mut self) {
        tokio::select! {
            _ = self.interrupt.recv() => {}
            _ = self.terminate.recv() => {}
        }
    }
}

#[cfg(windows)]
struct SignalSource(tokio::signal::windows::CtrlC);

#[cfg(windows)]
impl SignalSource {
    fn new() -> io::Result<Self> {
        tokio::signal::windows::ctrl_c().map(Self)
    }

    async fn next(&mut self) {
        self.0.recv().await;
    }
}
