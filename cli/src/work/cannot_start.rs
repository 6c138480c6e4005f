//! Ends the worker when its command cannot be started.

use std::sync::{Arc, OnceLock};

use relq::worker::CancellationToken;

/// Carries a message from the first job that cannot start the command to the worker,
/// which then ends.
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

    /// The message of the job that could not start the command. `None` if there is
    /// none.
    pub(super) fn message(&self) -> Option<String> {
        self.message.get().cloned()
    }

    pub(super) fn tell(&self, message: String) {
        self.message.get_or_init(|| message);
        self.told.cancel();
    }
}
