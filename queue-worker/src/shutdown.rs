//! The requests that end a worker: futures of the application, and signals.

use std::{
    future::{Future, poll_fn},
    io,
    pin::{Pin, pin},
    sync::{Arc, Mutex, PoisonError},
    task::{Context, Poll, Wake, Waker},
};

use tokio::{sync::Notify, task::JoinSet};
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
    _signals: Arc<JoinSet<()>>,
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
        Ok(Self { stop, halt, _signals: Arc::new(listening) })
    }

    /// Makes this shutdown into one for each of several claim loops. A request stops all
    /// of them.
    pub(crate) fn split(self, loops: usize) -> Vec<Self> {
        let (stop, halt) =
            (SharedRequest::new(self.stop), SharedRequest::new(self.halt));
        let of_one = |_| Self {
            stop: AnyOf::new(vec![stop.of_one_loop()]),
            halt: AnyOf::new(vec![halt.of_one_loop()]),
            _signals: Arc::clone(&self._signals),
        };
        (0..loops).map(of_one).collect()
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

    /// Adds a future that requests a graceful stop.
    pub(crate) fn also_stop_on(
        &mut self,
        request: impl Future<Output = ()> + Send + 'static,
    ) {
        self.stop.requests.push(Box::pin(request));
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
        poll_fn(|context| self.poll_made(context)).await;
    }

    fn poll_made(&mut self, context: &mut Context<'_>) -> Poll<()> {
        let mut requests = self.requests.iter_mut();
        if self.is_made || requests.any(|r| r.as_mut().poll(context).is_ready()) {
            self.is_made = true;
            return Poll::Ready(());
        }
        Poll::Pending
    }
}

/// A request that several claim loops wait for.
///
/// Each loop polls the application's futures itself, so that a request takes effect
/// before the loop reads the next reply of its store. A future remembers only the waker
/// of its last poll, which may belong to a loop that has ended. So all loops poll with
/// one waker, which wakes all of them.
#[derive(Clone)]
struct SharedRequest {
    request: Arc<Mutex<AnyOf>>,
    loops: Arc<WaitingLoops>,
}

#[derive(Default)]
struct WaitingLoops(Notify);

impl SharedRequest {
    fn new(request: AnyOf) -> Self {
        Self { request: Arc::new(Mutex::new(request)), loops: Arc::default() }
    }

    /// Returns a future for one claim loop, which completes when the request is made.
    fn of_one_loop(&self) -> Request {
        let shared = self.clone();
        Box::pin(async move { shared.made().await })
    }

    async fn made(&self) {
        let waker = Waker::from(Arc::clone(&self.loops));
        loop {
            // Listen before the poll, so that no wake-up after it is missed.
            let mut woken = pin!(self.loops.0.notified());
            woken.as_mut().enable();
            if self.poll_made(&waker).is_ready() {
                return self.loops.0.notify_waiters();
            }
            woken.await;
        }
    }

    fn poll_made(&self, waker: &Waker) -> Poll<()> {
        let mut request = self.request.lock().unwrap_or_else(PoisonError::into_inner);
        request.poll_made(&mut Context::from_waker(waker))
    }
}

impl Wake for WaitingLoops {
    fn wake(self: Arc<Self>) {
        self.0.notify_waiters();
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

#[cfg(test)]
mod tests {
    use futures_lite::future::poll_once;

    use super::*;

    /// A loop that has ended was the last to poll the application's future. A later
    /// request still wakes the other loop.
    #[tokio::test]
    async fn a_request_wakes_the_loops_that_are_left() {
        let asked = CancellationToken::new();
        let mut requests = Requests::default();
        requests.halt.push(Box::pin(asked.clone().cancelled_owned()));
        let mut loops = Shutdown::listen(requests).unwrap().split(2);
        let mut ends = loops.pop().unwrap();
        let mut left = loops.pop().unwrap();
        let waits = tokio::spawn(async move { left.halt_asked().await });
        tokio::task::yield_now().await;

        assert!(poll_once(ends.halt_asked()).await.is_none());
        drop(ends);
        asked.cancel();

        let limit = std::time::Duration::from_secs(20);
        tokio::time::timeout(limit, waits).await.expect("it is woken").unwrap();
    }

    /// R6: the worker stops hard when its heartbeat dies, also if the application has asked
    /// for nothing.
    #[tokio::test]
    async fn a_hard_stop_can_be_requested_from_inside() {
        let mut shutdown = Shutdown::listen(Requests::default()).unwrap();
        assert!(poll_once(shutdown.halt_asked()).await.is_none(), "no request");
        assert!(!shutdown.is_halting(), "it stops hard without a request");

        shutdown.also_halt_on(async {});

        assert!(poll_once(shutdown.halt_asked()).await.is_some(), "a request");
        assert!(shutdown.is_halting());
    }
}
