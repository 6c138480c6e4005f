//! The process group of one command. It contains the processes that the command starts,
//! so that they can be ended together.

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
    /// Makes the value for the group that `guard` leads. When the command ends by
    /// itself, the guard goes back to `guards`.
    pub(super) fn new(guard: Guard, guards: Arc<Guards>) -> Self {
        Self { guard: Some(guard), guards }
    }

    /// Called when the command has ended by itself: kills nothing, so processes that it
    /// left running continue.
    pub(super) async fn release(mut self) {
        if let Some(guard) = self.guard.take() {
            self.guards.give_back(guard).await;
        }
    }

    /// Sends SIGTERM to the whole group, waits up to [`GRACE`] for the command, and
    /// kills the processes that remain, including the guard.
    pub(super) async fn terminate(self, child: &mut Child) {
        self.send(Signal::TERM);
        // Drop the group even if the command ended in time: this kills the other
        // processes of the group.
        let _ = timeout(GRACE, child.wait()).await;
        drop(self);
        if let Err(error) = child.wait().await {
            tracing::warn!("a killed command cannot be waited for: {error}");
        }
    }

    fn send(&self, signal: Signal) {
        // Ignore an error: the group has ended already.
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
