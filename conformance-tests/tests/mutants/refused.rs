//! Overrides whose bug shows only after the server has refused a command.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use relq_conformance::overrides::{Override, Right};
use relq_core::{
    error::{ErrorContext, Operation},
    *,
};

/// After the server has refused a call, fails the next call of `pause` as well.
#[derive(Default)]
pub(crate) struct SulksAfterRefusal {
    was_refused: AtomicBool,
}

#[async_trait]
impl Override for SulksAfterRefusal {
    async fn pause(&self, right: &Right) -> Result<(), Error> {
        if self.was_refused.swap(false, Ordering::Relaxed) {
            let at = ErrorContext { backend: "mutant", operation: Operation::Pause };
            return Err(Error::Invalid { at, reason: "it was refused".to_owned() });
        }
        let paused = right.pause().await;
        self.was_refused.store(is_refusal(&paused), Ordering::Relaxed);
        paused
    }
}

/// Never returns from the first call of `pause` that the server refuses.
#[derive(Default)]
pub(crate) struct WaitsForEver {
    has_waited: AtomicBool,
}

#[async_trait]
impl Override for WaitsForEver {
    async fn pause(&self, right: &Right) -> Result<(), Error> {
        let paused = right.pause().await;
        if is_refusal(&paused) && !self.has_waited.swap(true, Ordering::Relaxed) {
            std::future::pending::<()>().await;
        }
        paused
    }
}

fn is_refusal(answer: &Result<(), Error>) -> bool {
    matches!(answer, Err(Error::Full { .. } | Error::Unavailable { .. }))
}

/// Starts a background task that panics when the server refuses a command.
pub(crate) struct LosesATask;

#[async_trait]
impl Override for LosesATask {
    async fn pause(&self, right: &Right) -> Result<(), Error> {
        let paused = right.pause().await;
        if is_refusal(&paused) {
            // Drop the task's handle, so that no code sees the panic.
            drop(tokio::spawn(async { panic!("it was refused") }));
            tokio::task::yield_now().await;
        }
        paused
    }
}
