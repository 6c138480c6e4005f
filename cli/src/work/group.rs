//! The process group of one command. Processes that the command started end with it.

use std::sync::Arc;

use rustix::process::{Signal, kill_process_group};
use tokio::{process::Child, time::timeout};

use super::{
    guard::GRACE,
    guards::{Guard, Guards},
};

/// A process group. Dropping this value kills the group if its command has not ended.
#[derive(Debug)]
pub(super) struct Group {
    guard: Option<Guard>,
    guards: Arc<Guards>,
}

impl Group {
    /// The group of this guard. The guard returns to `guards` in the end.
    pub(super) fn new(guard: Guard, guards: Arc<Guards>) -> Self {
        Self { guard: Some(guard), guards }
    }

    /// The command ended by itself. Processes that it left running continue.
    pub(super) async fn release(mut self) {
        if let Some(guard) = self.guard.take() {
            self.guards.give_back(guard).await;
        }
    }

    /// Asks the whole group to end, waits a moment for the command, and kills the
    /// remaining processes, including the guard.
    pub(super) async fn terminate(self, child: &mut Child) {
        self.send(Signal::TERM);
        // The rest of the group is killed now, even if the command ended in time.
        let _ = timeout(GRACE, child.wait()).await;
        drop(self);
        if let Err(error) = child.wait().await {
            tracing::warn!("a killed command cannot be waited for: {error}");
        }
    }

    fn send(&self, signal: Signal) {
        // A group that has ended already needs no signal.
        if let Some(guard) = &self.guard {
            let _ = kill_process_group(guard.group(), signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.send(Signal::KILL);
    }
}
