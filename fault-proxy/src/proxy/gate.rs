//! Lets the replies to held commands through one at a time.
//!
//! One command can serve two commands that the server holds. The server writes both
//! replies at nearly the same moment, and chance decides which of them a client reads
//! first. Behind a closed gate each reply waits until the suite lets it go on, so that
//! two runs of the same commands go on in the same way.

use std::{
    collections::BTreeMap,
    sync::{Mutex, MutexGuard, PoisonError},
};

use tokio::sync::oneshot;

#[derive(Debug, Default)]
pub(crate) struct Gate(Mutex<State>);

#[derive(Debug, Default)]
struct State {
    is_closed: bool,
    /// The replies that wait, by the number of their command. Commands are numbered in
    /// the order in which the server held them.
    waiting: BTreeMap<u64, oneshot::Sender<()>>,
}

impl Gate {
    /// From now on each reply waits.
    pub(crate) fn close(&self) {
        self.state().is_closed = true;
    }

    /// Lets all replies go on, and those that come later.
    pub(crate) fn open(&self) {
        let mut state = self.state();
        state.is_closed = false;
        // Dropping its sender lets a reply go on.
        state.waiting.clear();
    }

    /// Of the replies that wait here, lets the one go on whose command the server held
    /// first. Returns `false` if none waits.
    pub(crate) fn let_one_through(&self) -> bool {
        let mut state = self.state();
        while let Some((_, reply)) = state.waiting.pop_first() {
            // The connection of a reply may have ended meanwhile.
            if reply.send(()).is_ok() {
                return true;
            }
        }
        false
    }

    /// Completes when the reply to the held command with the number `command` may be
    /// sent to its client: at once if the gate is open.
    pub(crate) async fn passes(&self, command: u64) {
        let waits = {
            let mut state = self.state();
            let (go_on, waits) = oneshot::channel();
            if state.is_closed {
                state.waiting.insert(command, go_on);
            }
            waits
        };
        // An error means that the gate is open.
        let _ = waits.await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use std::{
        pin::{Pin, pin},
        task::{Context, Waker},
    };

    use super::*;

    fn passes(mut reply: Pin<&mut impl Future<Output = ()>>) -> bool {
        reply.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_ready()
    }

    #[test]
    fn the_command_that_was_held_first_goes_first() {
        let gate = Gate::default();
        gate.close();
        let (mut second, mut first) = (pin!(gate.passes(2)), pin!(gate.passes(1)));
        assert!(!passes(second.as_mut()) && !passes(first.as_mut()));

        assert!(gate.let_one_through());
        assert!(!passes(second.as_mut()) && passes(first.as_mut()));
        assert!(gate.let_one_through());
        assert!(passes(second.as_mut()));
        assert!(!gate.let_one_through());
    }

    #[test]
    fn an_open_gate_holds_nothing_back() {
        let gate = Gate::default();
        assert!(passes(pin!(gate.passes(1))));
        gate.close();
        let mut waits = pin!(gate.passes(2));
        assert!(!passes(waits.as_mut()));

        gate.open();

        assert!(passes(waits));
    }
}
