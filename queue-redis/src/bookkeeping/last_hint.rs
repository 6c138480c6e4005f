//! The findings of the last claim without a wait, for a caller that waits afterwards.

use std::sync::{Mutex, MutexGuard, PoisonError};

/// The hint of the last claim without a wait. A caller of
/// [`wait_for_jobs`](relq_core::ReliableQueue::wait_for_jobs) has made that claim, and
/// waits by its hint.
#[derive(Debug)]
pub struct LastHint<H>(Mutex<State<H>>);

#[derive(Debug)]
struct State<H> {
    hint: Option<H>,
    /// Whether a caller waited while the queue was paused.
    waited_through_pause: bool,
}

impl<H: Copy> LastHint<H> {
    /// Returns the hint to wait by, or `None` if no claim was made before. `is_paused`
    /// says whether a hint is of a paused queue.
    pub fn begin_wait(&self, is_paused: impl FnOnce(&H) -> bool) -> Option<H> {
        let mut state = self.state();
        let hint = state.hint;
        state.waited_through_pause |= hint.as_ref().is_some_and(is_paused);
        hint
    }

    /// Keeps the hint of a claim. Returns whether a caller waited through a pause that
    /// has ended: it was woken by the signal of the resume, and must pass it on.
    pub fn keep(&self, hint: H, is_paused: bool) -> bool {
        let mut state = self.state();
        state.hint = Some(hint);
        !is_paused && std::mem::take(&mut state.waited_through_pause)
    }

    fn state(&self) -> MutexGuard<'_, State<H>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<H> Default for LastHint<H> {
    fn default() -> Self {
        Self(Mutex::new(State { hint: None, waited_through_pause: false }))
    }
}
