//! The state of a worker, for the probes of a supervisor.

use std::sync::{
    Arc,
    atomic::{AtomicBool, AtomicU8, AtomicUsize, Ordering::SeqCst},
};

/// The state of a worker, which answers a readiness probe.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum WorkerState {
    /// It has not reached the stores of all its queues yet.
    Starting,
    /// It serves its queues.
    Running,
    /// It cannot reach the store of a queue that it has reached before: the last claim or
    /// recovery failed. It tries again by itself, and the handlers that run go on.
    Disconnected,
    /// It was asked to stop, or ends with an error: it claims no more jobs, and its handlers
    /// may finish.
    Stopping,
    /// It has ended, or its future was dropped.
    Ended,
}

impl WorkerState {
    /// Whether the worker claims jobs: it is [`Running`](Self::Running).
    pub fn is_ready(self) -> bool {
        self == Self::Running
    }

    /// The state as one lower-case word.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Starting => "starting",
            Self::Running => "running",
            Self::Disconnected => "disconnected",
            Self::Stopping => "stopping",
            Self::Ended => "ended",
        }
    }
}

// The phases of a worker. A worker that was not run yet is in phase 0.
const SERVING: u8 = 1;
const STOPPING: u8 = 2;
const ENDED: u8 = 3;

/// The state that the parts of a worker share.
#[derive(Debug, Default)]
pub(crate) struct Lifecycle {
    phase: AtomicU8,
    queues: AtomicUsize,
    /// How many of the queues answered the last claim or recovery.
    reached: AtomicUsize,
    was_running: AtomicBool,
}

impl Lifecycle {
    pub(crate) fn state(&self) -> WorkerState {
        match self.phase.load(SeqCst) {
            STOPPING => WorkerState::Stopping,
            ENDED => WorkerState::Ended,
            SERVING if self.all_are_reached() => WorkerState::Running,
            SERVING if self.was_running.load(SeqCst) => WorkerState::Disconnected,
            _ => WorkerState::Starting,
        }
    }

    /// Notes that the worker serves this number of queues from now on, until the returned
    /// value is dropped.
    pub(crate) fn begin(self: Arc<Self>, queues: usize) -> EndOnDrop {
        self.queues.store(queues, SeqCst);
        self.phase.store(SERVING, SeqCst);
        EndOnDrop(self)
    }

    pub(crate) fn stopping(&self) {
        let _ = self.phase.compare_exchange(SERVING, STOPPING, SeqCst, SeqCst);
    }

    fn all_are_reached(&self) -> bool {
        self.reached.load(SeqCst) >= self.queues.load(SeqCst)
    }
}

/// Ends the state of a worker when the worker's future ends or is dropped.
pub(crate) struct EndOnDrop(Arc<Lifecycle>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.phase.store(ENDED, SeqCst);
    }
}

/// Whether one queue answered the last claim or recovery. The parts of a worker that serve
/// the queue share it.
#[derive(Debug, Default)]
pub(crate) struct Contact {
    is_made: AtomicBool,
    lifecycle: Arc<Lifecycle>,
}

impl Contact {
    pub(crate) fn new(lifecycle: Arc<Lifecycle>) -> Self {
        Self { is_made: AtomicBool::new(false), lifecycle }
    }

    pub(crate) fn is_made(&self) {
        if !self.is_made.swap(true, SeqCst) {
            self.lifecycle.reached.fetch_add(1, SeqCst);
            if self.lifecycle.all_are_reached() {
                self.lifecycle.was_running.store(true, SeqCst);
            }
        }
    }

    pub(crate) fn is_lost(&self) {
        if self.is_made.swap(false, SeqCst) {
            self.lifecycle.reached.fetch_sub(1, SeqCst);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn worker_on(queues: usize) -> (Arc<Lifecycle>, EndOnDrop, Vec<Contact>) {
        let lifecycle = Arc::<Lifecycle>::default();
        assert_eq!(lifecycle.state(), WorkerState::Starting);
        let end = Arc::clone(&lifecycle).begin(queues);
        let contact = |_| Contact::new(Arc::clone(&lifecycle));
        let contacts = (0..queues).map(contact).collect();
        (lifecycle, end, contacts)
    }

    #[test]
    fn a_worker_is_ready_while_all_its_queues_answer() {
        let (lifecycle, _end, contacts) = worker_on(2);
        contacts[0].is_made();
        contacts[0].is_made();
        assert_eq!(lifecycle.state(), WorkerState::Starting);
        contacts[1].is_made();
        assert!(lifecycle.state().is_ready());

        contacts[1].is_lost();
        contacts[1].is_lost();
        assert_eq!(lifecycle.state(), WorkerState::Disconnected);
        contacts[0].is_lost();
        contacts[1].is_made();
        assert_eq!(lifecycle.state(), WorkerState::Disconnected);
        contacts[0].is_made();
        assert!(lifecycle.state().is_ready());
    }

    #[test]
    fn a_stopped_worker_is_never_ready_again() {
        let (lifecycle, end, contacts) = worker_on(1);
        contacts[0].is_made();
        lifecycle.stopping();
        contacts[0].is_lost();
        contacts[0].is_made();
        assert_eq!(lifecycle.state(), WorkerState::Stopping);
        drop(end);
        lifecycle.stopping();
        assert_eq!(lifecycle.state(), WorkerState::Ended);
    }

    /// The words are part of the interface: a probe may compare them.
    #[test]
    fn each_state_has_a_word() {
        let states = [
            WorkerState::Starting,
            WorkerState::Running,
            WorkerState::Disconnected,
            WorkerState::Stopping,
            WorkerState::Ended,
        ];
        let words = ["starting", "running", "disconnected", "stopping", "ended"];
        assert_eq!(states.map(WorkerState::as_str), words, "the words");
    }
}
