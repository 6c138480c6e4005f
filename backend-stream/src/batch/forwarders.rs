//! The tasks that go on forwarding completion jobs after a call has returned: at most one
//! for each runtime of a client.
//!
//! A runtime may be blocked or dropped, and its task with it. So no call relies on a task
//! of another runtime, and none waits for a task (R22).

use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use tokio::runtime;

/// The tasks of one client that forward completion jobs.
#[derive(Debug, Default)]
pub(crate) struct Forwarders(Mutex<Running>);

/// The runtimes that have a task, and whether a call has left completion jobs for the task
/// since it began its last look at the outbox.
type Running = HashMap<runtime::Id, bool>;

/// The turn of the only task of a runtime. It ends with this value, also if the task is
/// dropped.
#[derive(Debug)]
pub(crate) struct Turn {
    forwarders: Arc<Forwarders>,
    runtime: runtime::Id,
    is_over: bool,
}

impl Forwarders {
    /// Begins the turn of a task on this runtime. Returns `None` if the runtime has a task,
    /// which then looks at the outbox once more.
    pub(crate) fn begin(self: &Arc<Self>, runtime: runtime::Id) -> Option<Turn> {
        let mut running = self.running();
        if let Some(is_asked) = running.get_mut(&runtime) {
            *is_asked = true;
            return None;
        }
        running.insert(runtime, false);
        Some(Turn { forwarders: Arc::clone(self), runtime, is_over: false })
    }

    /// Whether a task is running, so that completion jobs may be left in the outbox.
    pub(crate) fn are_running(&self) -> bool {
        !self.running().is_empty()
    }

    fn running(&self) -> MutexGuard<'_, Running> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Turn {
    /// Ends the turn, unless a call has asked for another look at the outbox. Returns
    /// whether it did.
    pub(crate) fn is_extended(&mut self) -> bool {
        let mut running = self.forwarders.running();
        let is_asked = running.get_mut(&self.runtime).is_some_and(mem::take);
        if !is_asked {
            running.remove(&self.runtime);
            self.is_over = true;
        }
        is_asked
    }
}

impl Drop for Turn {
    fn drop(&mut self) {
        if !self.is_over {
            self.forwarders.running().remove(&self.runtime);
        }
    }
}

#[cfg(test)]
mod tests {
    use tokio::runtime::Handle;

    use super::*;

    /// A call that leaves completion jobs while a task ends is not overlooked, and a task
    /// that was dropped makes room for another one.
    #[tokio::test]
    async fn a_runtime_has_one_task_which_misses_no_call() {
        let forwarders = Arc::<Forwarders>::default();
        let runtime = Handle::current().id();
        let mut turn = forwarders.begin(runtime).unwrap();

        assert!(forwarders.begin(runtime).is_none());
        assert!(turn.is_extended());
        assert!(!turn.is_extended());
        assert!(!forwarders.are_running());
        let next = forwarders.begin(runtime).unwrap();
        drop(turn);
        assert!(forwarders.are_running());
        drop(next);
        assert!(!forwarders.are_running());
    }
}
