//! What asks a worker to end: futures, and signals if it was told to listen.

use std::{
    future::{Future, poll_fn},
    io,
    pin::Pin,
    task::Poll,
};

use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::WorkerError;

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
///
/// They are polled where the claim loop runs, so that a request that was made takes
/// effect before the next answer of the store.
pub(crate) struct Shutdown {
    stop: AnyOf,
    halt: AnyOf,
    _signals: JoinSet<()>,
}

/// Requests of which the first to be made counts.
struct AnyOf {
    requests: Vec<Request>,
    is_made: bool,
}

impl Shutdown {
    pub(crate) fn listen(requests: Requests) -> Result<Self, WorkerError> {
        let Requests { mut stop, mut halt, on_signals } = requests;
        let mut listening = JoinSet::new();
        if on_signals.is_some() {
            let (first, second) = (CancellationToken::new(), CancellationToken::new());
            stop.push(Box::pin(first.clone().cancelled_owned()));
            halt.push(Box::pin(second.clone().cancelled_owned()));
            let signals = SignalSource::new().map_err(WorkerError::Signals)?;
            listening.spawn(pass_on(signals, first, second));
        }
        let (stop, halt) = (AnyOf::new(stop), AnyOf::new(halt));
        Ok(Self { stop, halt, _signals: listening })
    }

    /// Completes when the worker is to stop, in good order or hard.
    pub(crate) async fn stop_asked(&mut self) {
        tokio::select! {
            () = self.stop.made() => {}
            () = self.halt.made() => {}
        }
    }

    /// Completes when the worker is to stop hard.
    pub(crate) async fn halt_asked(&mut self) {
        self.halt.made().await;
    }

    pub(crate) fn is_halting(&self) -> bool {
        self.halt.is_made
    }

    /// Makes the shutdown a hard one.
    pub(crate) fn halt(&mut self) {
        self.halt.is_made = true;
    }
}

impl AnyOf {
    fn new(requests: Vec<Request>) -> Self {
        Self { requests, is_made: false }
    }

    async fn made(&mut self) {
        poll_fn(|context| {
            let mut requests = self.requests.iter_mut();
            if self.is_made || requests.any(|r| r.as_mut().poll(context).is_ready()) {
                return Poll::Ready(());
            }
            Poll::Pending
        })
        .await;
        self.is_made = true;
    }
}

async fn pass_on(
    mut signals: SignalSource,
    first: CancellationToken,
    second: CancellationToken,
) {
    signals.next().await;
    tracing::info!("stopping; once more stops hard");
    first.cancel();
    signals.next().await;
    second.cancel();
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
