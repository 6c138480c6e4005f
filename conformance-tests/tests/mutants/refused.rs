//! Overrides whose trouble begins with a refusal of the server's.

use std::sync::atomic::{AtomicBool, Ordering};

use async_trait::async_trait;
use relq_conformance::overrides::{Override, Right};
use relq_core::*;

/// Refuses what is asked again after the server's refusal.
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

/// Waits for ever after the server's first refusal.
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

/// Has a task in the background that the server's refusal ends.
pub(crate) struct LosesATask;

#[async_trait]
impl Override for LosesATask {
    async fn pause(&self, right: &Right) -> Result<(), Error> {
        let paused = right.pause().await;
        if is_refusal(&paused) {
            // Nobody asks for it any more.
            drop(tokio::spawn(async { panic!("it was refused") }));
            tokio::task::yield_now().await;
        }
        paused
    }
}
