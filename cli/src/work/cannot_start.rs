//! Reports that the command cannot be started.

use std::sync::{Arc, OnceLock};

use relq::worker::CancellationToken;

/// Set by the first job that cannot start the command; ends the worker.
#[derive(Debug, Clone, Default)]
pub(super) struct CannotStart {
    message: Arc<OnceLock<String>>,
    told: CancellationToken,
}

impl CannotStart {
    /// Completes when a job has reported that the command cannot be started.
    pub(super) async fn told(self) {
        self.told.cancelled().await;
    }

    /// The reported message.
    pub(super) fn message(&self) -> Option<String> {
        self.message.get().cloned()
    }

    pub(super) fn tell(&self, message: String) {
        self.message.get_or_init(|| message);
        self.told.cancel();
    }
}
