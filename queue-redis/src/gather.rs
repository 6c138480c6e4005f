//! Concurrent pushes as one command.
//!
//! ```text
//!  nothing under way      a push is sent at once
//!  one under way          others wait for its answer, and go together as the next
//! ```
//!
//! A lone producer never waits for others: there is no timer. Sixty-four at once share
//! a command, its reply and the server's work for both. Each push is whole within the
//! command it shares, and keeps its own answer; a server that refuses the command
//! refuses all that is in it, as it would have one by one.
//!
//! Dropping the future of a push withdraws it if it was not sent yet (R22).

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_lite::future::yield_now;
use queue_core::{Error, Operation};
use tokio::{runtime::Handle, sync::oneshot};

use crate::{Conn, command, conn::Failed};

/// What one command takes at most: so much that sharing more would save nothing, and
/// so little that others' calls are not held up behind it.
const MOST: Load = Load { elements: 1000, bytes: 1024 * 1024 };

/// Pushes onto one list.
pub struct Gather(Arc<Shared>);

struct Shared {
    conn: Conn,
    list: String,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    is_sending: bool,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    elements: Elements,
    sent: oneshot::Sender<Sent>,
}

type Elements = Vec<Vec<u8>>;
type Sent = Result<(), Failed>;

/// How much a command carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Load {
    elements: usize,
    bytes: usize,
}

/// Who sends just now. Whatever becomes of it, who waits behind it is served.
struct Turn<'a>(&'a Arc<Shared>);

impl Gather {
    /// Pushes onto `list`, at its left end.
    pub fn new(conn: Conn, list: String) -> Self {
        Self(Arc::new(Shared { conn, list, state: Mutex::default() }))
    }

    /// Pushes these elements in one step, the first of them first.
    ///
    /// # Errors
    /// As [`Conn::call`], of the command that carried them.
    pub async fn push(&self, elements: Vec<Vec<u8>>) -> Result<(), Error> {
        let at = self.0.conn.at(Operation::Push);
        let pushed = match self.0.take_turn(elements) {
            Ok((turn, elements)) => turn.0.send(&[elements]).await,
            Err(sent) => sent.await.unwrap_or_else(|_| Err(Failed::unheard())),
        };
        pushed.map_err(|failed| failed.at(at))
    }
}

impl Shared {
    /// The turn to send, or where the answer comes from when another has it.
    fn take_turn(
        self: &Arc<Self>,
        elements: Elements,
    ) -> Result<(Turn<'_>, Elements), oneshot::Receiver<Sent>> {
        let mut state = self.state();
        if state.is_sending {
            let (sent, answer) = oneshot::channel();
            state.waiting.push_back(Waiting { elements, sent });
            return Err(answer);
        }
        state.is_sending = true;
        Ok((Turn(self), elements))
    }

    async fn send(&self, pushes: &[Elements]) -> Sent {
        let mut cmd = command("LPUSH");
        cmd.arg(&self.list);
        pushes.iter().flatten().for_each(|element| {
            cmd.arg(element);
        });
        self.conn.send(&cmd).await.map(drop)
    }

    /// Those who wait hear that nobody knows, and the turn is anybody's.
    fn give_up(&self) {
        let given_up = std::mem::take(&mut *self.state());
        drop(given_up);
    }

    /// What the next command carries, and who waits for it; `None`, and the turn is
    /// anybody's, when nobody does.
    fn next_load(&self) -> Option<(Vec<Elements>, Vec<oneshot::Sender<Sent>>)> {
        let mut state = self.state();
        let next = state.next_load();
        state.is_sending = !next.is_empty();
        let parts = |one: Waiting| (one.elements, one.sent);
        state.is_sending.then(|| next.into_iter().map(parts).unzip())
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl State {
    /// Takes out as many as one command carries, but for those withdrawn.
    fn next_load(&mut self) -> Vec<Waiting> {
        let (mut next, mut load) = (Vec::new(), Load::default());
        while let Some(first) = self.waiting.pop_front() {
            if first.sent.is_closed() {
                continue;
            }
            let more = load.with(&first.elements);
            if !next.is_empty() && more.is_over(MOST) {
                self.waiting.push_front(first);
                break;
            }
            load = more;
            next.push(first);
        }
        next
    }
}

impl Load {
    fn with(self, elements: &[Vec<u8>]) -> Self {
        let bytes: usize = elements.iter().map(Vec::len).sum();
        Self { elements: self.elements + elements.len(), bytes: self.bytes + bytes }
    }

    fn is_over(self, most: Self) -> bool {
        self.elements > most.elements || self.bytes > most.bytes
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut state = self.0.state();
        if state.waiting.is_empty() {
            state.is_sending = false;
            return;
        }
        drop(state);
        let Ok(runtime) = Handle::try_current() else {
            // The runtime ends, and with it whoever waits.
            return self.0.give_up();
        };
        runtime.spawn(Serving::of(self.0).run());
        // What is spawned last waits for this thread, which its push's caller may keep
        // busy from here on; what was spawned before can be taken by another.
        runtime.spawn(async {});
    }
}

/// Who serves those that wait. Dropped with its runtime, it leaves the turn to the next
/// push, which may come from another runtime.
struct Serving {
    shared: Arc<Shared>,
    is_over: bool,
}

impl Serving {
    fn of(shared: &Arc<Shared>) -> Self {
        Self { shared: Arc::clone(shared), is_over: false }
    }

    /// Until nobody waits.
    async fn run(mut self) {
        loop {
            // Those who just had their answer may have the next push at hand. Where one
            // of them blocks this thread another goes on here.
            yield_now().await;
            let Some((pushes, answers)) = self.shared.next_load() else { break };
            let sent = self.shared.send(&pushes).await;
            for answer in answers {
                // Who does not wait any more has no use for it.
                let _ = answer.send(sent.clone());
            }
        }
        self.is_over = true;
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if !self.is_over {
            self.shared.give_up();
        }
    }
}

impl fmt::Debug for Gather {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Gather({})", self.0.list)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn waiting(bytes: usize) -> (Waiting, oneshot::Receiver<Sent>) {
        let (sent, answer) = oneshot::channel();
        (Waiting { elements: vec![vec![0; bytes]], sent }, answer)
    }

    #[test]
    fn who_gave_up_is_not_sent() {
        let (kept, _answer) = waiting(1);
        let (withdrawn, given_up) = waiting(2);
        drop(given_up);
        let mut state = State { is_sending: true, waiting: [withdrawn, kept].into() };

        let sizes: Vec<_> =
            state.next_load().iter().map(|one| one.elements[0].len()).collect();

        assert_eq!(sizes, [1]);
    }

    #[test]
    fn a_command_carries_no_more_than_it_should_but_always_one() {
        let all: Vec<_> = [MOST.bytes + 1, 1, MOST.bytes].map(waiting).into();
        let (all, _answers): (VecDeque<_>, Vec<_>) = all.into_iter().unzip();
        let mut state = State { is_sending: true, waiting: all };

        let loads = [(); 4].map(|()| state.next_load().len());

        assert_eq!(loads, [1, 1, 1, 0]);
    }
}
