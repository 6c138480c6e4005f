//! Concurrent pushes as one command.
//!
//! ```text
//!  nothing under way      a push is sent at once, by its caller
//!  one under way          others wait for its answer, and go together as the next, sent
//!                         by a task until nobody waits
//! ```
//!
//! A lone producer never waits for others: there is no timer, and no task between it and
//! the connection. Sixty-four at once share a command, its reply and the server's work for
//! both. Each push is whole within the command it shares, and keeps its own answer; a
//! server that refuses the command refuses all that is in it, as it would have one by one.
//!
//! A command is sent on a connection that is open already, so it is on its way once its
//! caller was polled, and its answer can be awaited by anybody: a caller that is dropped,
//! or polled no more, holds nothing that others wait for. Callers of another runtime
//! gather by themselves, so that no runtime waits for another.
//!
//! Dropping the future of a push withdraws it if it was not sent yet (R22).

use std::{
    collections::VecDeque,
    fmt,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use futures_lite::future::yield_now;
use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use redis::Cmd;
use relq_core::{Error, Operation};
use tokio::{
    runtime::{self, Handle},
    sync::oneshot,
};

use crate::{Conn, command, conn::Failed, link::Link};

/// What one command takes at most: so much that sharing more would save nothing, and
/// so little that others' calls are not held up behind it.
const MOST: Load = Load { elements: 1000, bytes: 1024 * 1024 };

/// Pushes onto one list.
pub struct PushBatcher(Arc<Pushes>);

struct Pushes {
    conn: Conn,
    list: String,
    by_runtime: Mutex<Vec<(runtime::Id, State)>>,
}

/// The pushes of one runtime.
#[derive(Default)]
struct State {
    /// The command of the last caller that found nothing under way.
    alone: Option<Sending>,
    /// Whether a task sends what waits.
    is_served: bool,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    elements: Elements,
    sent: oneshot::Sender<Sent>,
}

/// Where the answer of a push comes from.
enum Begun {
    Alone(Sending),
    Waiting(oneshot::Receiver<Sent>),
}

type Elements = Vec<Vec<u8>>;
type Sent = Result<(), Failed>;

/// A command that was sent, and whose answer several may await.
type Sending = Shared<BoxFuture<'static, Sent>>;

/// How much a command carries.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Load {
    elements: usize,
    bytes: usize,
}

impl PushBatcher {
    /// Pushes onto `list`, at its left end.
    pub fn new(conn: Conn, list: String) -> Self {
        Self(Arc::new(Pushes { conn, list, by_runtime: Mutex::default() }))
    }

    /// Pushes these elements in one step, the first of them first.
    ///
    /// # Errors
    /// As [`Conn::call`], of the command that carried them.
    pub async fn push(&self, elements: Vec<Vec<u8>>) -> Result<(), Error> {
        let at = self.0.conn.at(Operation::Push);
        let pushed = match self.0.conn.link_for(Operation::Push).await {
            Ok(link) => self.0.push(link, elements).await,
            Err(error) => Err(Failed::BeforeSend(error)),
        };
        pushed.map_err(|failed| failed.at(at))
    }
}

impl Pushes {
    async fn push(self: &Arc<Self>, link: Link, elements: Elements) -> Sent {
        match self.begin(link, elements) {
            Begun::Alone(sending) => sending.await,
            Begun::Waiting(answer) => {
                answer.await.unwrap_or_else(|_| Err(Failed::unheard()))
            }
        }
    }

    fn begin(self: &Arc<Self>, link: Link, elements: Elements) -> Begun {
        let runtime = Handle::current();
        let mut states = self.states();
        let state = state_of(&mut states, runtime.id());
        if !state.is_busy() {
            let sending = self.send_on(link, elements);
            state.alone = Some(sending.clone());
            return Begun::Alone(sending);
        }
        let answer = state.wait(elements);
        let serving = Serving::begin(self, runtime.id(), state);
        drop(states);
        if let Some(serving) = serving {
            runtime.spawn(serving.run());
            // Tokio keeps the task that was spawned last for this thread, which the caller
            // may keep busy from here on. Another thread can take the one before it.
            runtime.spawn(async {});
        }
        Begun::Waiting(answer)
    }

    async fn send(&self, pushes: &[Elements]) -> Sent {
        self.conn.send(Operation::Push, &self.command(pushes)).await.map(drop)
    }

    /// A command that is on its way once this was polled.
    fn send_on(&self, link: Link, elements: Elements) -> Sending {
        let (conn, cmd) = (self.conn.clone(), self.command(&[elements]));
        async move { conn.send_on(link, &cmd).await.map(drop) }.boxed().shared()
    }

    fn command(&self, pushes: &[Elements]) -> Cmd {
        let mut cmd = command("LPUSH");
        cmd.arg(&self.list);
        pushes.iter().flatten().for_each(|element| {
            cmd.arg(element);
        });
        cmd
    }

    fn states(&self) -> MutexGuard<'_, Vec<(runtime::Id, State)>> {
        self.by_runtime.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

fn state_of(
    states: &mut Vec<(runtime::Id, State)>,
    runtime: runtime::Id,
) -> &mut State {
    let at = states.iter().position(|(id, _)| *id == runtime).unwrap_or_else(|| {
        // A runtime that has nothing under way, or that has ended, needs no state.
        states.retain(|(_, state)| state.is_busy());
        states.push((runtime, State::default()));
        states.len() - 1
    });
    &mut states[at].1
}

impl State {
    fn is_busy(&self) -> bool {
        let is_under_way = |sending: &Sending| sending.peek().is_none();
        self.is_served || self.alone.as_ref().is_some_and(is_under_way)
    }

    fn wait(&mut self, elements: Elements) -> oneshot::Receiver<Sent> {
        let (sent, answer) = oneshot::channel();
        self.waiting.push_back(Waiting { elements, sent });
        answer
    }

    /// The elements of the next command and where to send their answers. `None` when no
    /// push waits: the serving task ends then.
    fn next(&mut self) -> Option<(Vec<Elements>, Vec<oneshot::Sender<Sent>>)> {
        let next = self.next_load();
        self.is_served = !next.is_empty();
        let parts = |one: Waiting| (one.elements, one.sent);
        self.is_served.then(|| next.into_iter().map(parts).unzip())
    }

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

/// The task that sends what waits. Dropped with its runtime, it leaves those that wait
/// there without an answer.
struct Serving {
    pushes: Arc<Pushes>,
    runtime: runtime::Id,
    is_over: bool,
}

impl Serving {
    /// Begins to serve, unless another task does.
    fn begin(
        pushes: &Arc<Pushes>,
        runtime: runtime::Id,
        state: &mut State,
    ) -> Option<Self> {
        let was_served = std::mem::replace(&mut state.is_served, true);
        if was_served {
            return None;
        }
        Some(Self { pushes: Arc::clone(pushes), runtime, is_over: false })
    }

    /// Until nobody waits.
    async fn run(mut self) {
        let alone = self.with_state(|state| state.alone.take());
        if let Some(alone) = alone {
            // Its caller hears the same answer.
            let _ = alone.await;
        }
        loop {
            // Those who just had their answer may have the next push at hand. Where one
            // of them blocks this thread another goes on here.
            yield_now().await;
            let Some((pushes, answers)) = self.with_state(State::next) else { break };
            let sent = self.pushes.send(&pushes).await;
            for answer in answers {
                // A caller that was dropped has no use for it.
                let _ = answer.send(sent.clone());
            }
        }
        self.is_over = true;
    }

    fn with_state<T>(&self, act: impl FnOnce(&mut State) -> T) -> T {
        act(state_of(&mut self.pushes.states(), self.runtime))
    }
}

impl Drop for Serving {
    fn drop(&mut self) {
        if !self.is_over {
            let given_up = self.with_state(std::mem::take);
            drop(given_up);
        }
    }
}

impl fmt::Debug for PushBatcher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "PushBatcher({})", self.0.list)
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
        let mut state = State { waiting: [withdrawn, kept].into(), ..State::default() };

        let sizes: Vec<_> =
            state.next_load().iter().map(|one| one.elements[0].len()).collect();

        assert_eq!(sizes, [1]);
    }

    #[test]
    fn a_command_carries_no_more_than_it_should_but_always_one() {
        let all: Vec<_> = [MOST.bytes + 1, 1, MOST.bytes].map(waiting).into();
        let (all, _answers): (VecDeque<_>, Vec<_>) = all.into_iter().unzip();
        let mut state = State { waiting: all, ..State::default() };

        let loads = [(); 4].map(|()| state.next_load().len());

        assert_eq!(loads, [1, 1, 1, 0]);
    }
}
