//! The process group of one command: what it started ends with it.

use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process_group};
use tokio::{process::Child, time::timeout};

/// Between SIGTERM and SIGKILL.
const GRACE: Duration = Duration::from_secs(1);

/// A process group that is killed when this is dropped before its command ended.
#[derive(Debug)]
pub(super) struct Group(Option<Pid>);

impl Group {
    /// The group that `child` leads.
    pub(super) fn of(child: &Child) -> Self {
        let id = child.id().and_then(|id| i32::try_from(id).ok());
        Self(id.and_then(Pid::from_raw))
    }

    /// The command ended by itself: what it left running is left alone.
    pub(super) fn release(mut self) {
        self.0 = None;
    }

    /// Asks the whole group to end, waits a moment for the command, and kills what is
    /// left.
    pub(super) async fn terminate(self, child: &mut Child) {
        self.send(Signal::TERM);
        // Whether it ended in time or not, the rest of the group is killed now.
        let _ = timeout(GRACE, child.wait()).await;
        drop(self);
        if let Err(error) = child.wait().await {
            tracing::warn!("a killed command cannot be waited for: {error}");
        }
    }

    fn send(&self, signal: Signal) {
        // A group that has ended already needs no signal.
        if let Some(group) = self.0 {
            let _ = kill_process_group(group, signal);
        }
    }
}

impl Drop for Group {
    fn drop(&mut self) {
        self.send(Signal::KILL);
    }
}
