//! The requests that end a scheduler: futures of the application, and signals.

use std::{
    fmt,
    future::{Future, poll_fn},
    io,
    pin::Pin,
    task::Poll,
};

type Request = Pin<Box<dyn Future<Output = ()> + Send>>;

/// The requests that end a scheduler, as the application has set them.
#[derive(Default)]
pub(crate) struct Requests {
    stop: Vec<Request>,
    on_signals: bool,
}

impl Requests {
    pub(crate) fn stop_on(
        &mut self,
        request: impl Future<Output = ()> + Send + 'static,
    ) {
        self.stop.push(Box::pin(request));
    }

    pub(crate) fn handle_signals(&mut self) {
        self.on_signals = true;
    }

    /// Installs the signal handlers, if the application asked for it. The future
    /// completes when the first request is made, and never if there is none.
    pub(crate) fn listen(mut self) -> io::Result<impl Future<Output = ()> + Send> {
        if self.on_signals {
            self.stop.push(signals()?);
        }
        Ok(poll_fn(move |context| {
            let mut requests = self.stop.iter_mut();
            if requests.any(|request| request.as_mut().poll(context).is_ready()) {
                return Poll::Ready(());
            }
            Poll::Pending
        }))
    }
}

impl fmt::Debug for Requests {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Requests({}, signals: {})", self.stop.len(), self.on_signals)
    }
}

#[cfg(unix)]
fn signals() -> io::Result<Request> {
    use tokio::signal::unix::{SignalKind, signal};
    let mut interrupt = signal(SignalKind::interrupt())?;
    let mut terminate = signal(SignalKind::terminate())?;
    Ok(Box::pin(async move {
        tokio::select! {
            _ = interrupt.recv() => {}
            _ = terminate.recv() => {}
        }
    }))
}

#[cfg(windows)]
fn signals() -> io::Result<Request> {
    let mut interrupt = tokio::signal::windows::ctrl_c()?;
    Ok(Box::pin(async move {
        interrupt.recv().await;
    }))
}
