//! That the command turned out not to be startable.

use std::sync::{Arc, OnceLock};

use relq::worker::CancellationToken;

/// Told by whoever finds out first; ends the worker.
#[derive(Debug, Clone, Default)]
pub(super) struct CannotStart {
    message: Arc<OnceLock<String>>,
    told: CancellationToken,
}

impl CannotStart {
    /// Completes when it was told.
    pub(super) async fn told(self) {
        self.told.cancelled().await;
    }

    /// What was told.
    pub(super) fn message(&self) -> Option<String> {
        self.message.get().cloned()
    }

    pub(super) fn tell(&self, message: String) {
        self.message.get_or_init(|| message);
        self.told.cancel();
    }
}
