//! The requests that end a worker: futures of the application, and signals.

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

/// The requests that end a worker, as the application has set them.
#[derive(Default)]
pub(crate) struct Requests {
    pub(crate) stop: Vec<Request>,
    pub(crate) halt: Vec<Request>,
    pub(crate) on_signals: Option<Signals>,
}

/// The application's request that the worker handle SIGINT and SIGTERM.
pub(crate) struct Signals;

/// Waits for the requests that end a worker. Dropping this value stops waiting.
///
/// The claim loop polls this value before it reads the next reply of the store, so a
/// request takes effect first.
pub(crate) struct Shutdown {
    stop: AnyOf,
    halt: AnyOf,
    _signals: JoinSet<()>,
}

/// Several futures that request the same stop. It is requested when the first of them
/// completes.
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

    /// Completes when the worker must stop, gracefully or hard.
    pub(crate) async fn stop_asked(&mut self) {
        tokio::select! {
            () = self.stop.made() => {}
            () = self.halt.made() => {}
        }
    }

    /// Completes when the worker must stop hard.
    pub(crate) async fn halt_asked(&mut self) {
        self.halt.made().await;
    }

    pub(crate) fn is_halting(&self) -> bool {
        self.halt.is_made
    }

    /// Adds a future that requests a hard stop.
    pub(crate) fn also_halt_on(
        &mut self,
        request: impl Future<Output = ()> + Send + 'static,
    ) {
        self.halt.requests.push(Box::pin(request));
    }

    /// Requests a hard stop at once, without a future of the application.
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
    tracing::info!("stopping; a second request stops hard");
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
