//! Sends concurrent pushes together as one command.
//!
//! ```text
//!  nothing under way      a push is sent at once, by its caller
//!  one under way          others wait for its reply; a task then sends them together
//!                         as the next command, until no push waits
//! ```
//!
//! A producer that pushes alone never waits for others: there is no timer, and no task
//! between it and the connection. Sixty-four concurrent pushes share a command, its
//! reply and the server's work for both. A push is never split across commands, and
//! each gets a result of its own. A server that refuses the command refuses all pushes
//! in it, as it would have refused them one by one.
//!
//! A command is sent on a connection that is already open, so the first poll of its
//! future sends it, and any task can await the reply. So a caller that is dropped, or
//! no longer polled, blocks no other push. The callers of each runtime share commands
//! only among themselves, so that no runtime waits for another.
//!
//! Dropping the future of a push withdraws the push if it was not sent yet (R22).

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
use relq_core::{Error, error::Operation};
use tokio::{
    runtime::{self, Handle},
    sync::oneshot,
};

use crate::{Conn, command, conn::Failed, link::Link};

/// The maximum number of elements and bytes of one command. A larger command would not
/// save any more time, and other calls would wait longer behind it.
const MOST: Load = Load { elements: 1000, bytes: 1024 * 1024 };

/// Sends the concurrent pushes onto one list together.
pub struct PushBatcher(Arc<Pushes>);

struct Pushes {
    conn: Conn,
    list: String,
    by_runtime: Mutex<Vec<(runtime::Id, State)>>,
}

/// The pushes of one runtime that are under way or waiting.
#[derive(Default)]
struct State {
    /// The last push that was sent at once, because no other push was under way.
    alone: Option<Sending>,
    /// Whether a task is running that sends the waiting pushes.
    is_served: bool,
    waiting: VecDeque<Waiting>,
}

struct Waiting {
    elements: Elements,
    sent: oneshot::Sender<Sent>,
}

/// How a push gets its result: from its own command, or from the task that sends the
/// waiting pushes.
enum Begun {
    Alone(Sending),
    Waiting(oneshot::Receiver<Sent>),
}

type Elements = Vec<Vec<u8>>;
type Sent = Result<(), Failed>;

/// A command that was sent. Several tasks may await its reply.
type Sending = Shared<BoxFuture<'static, Sent>>;

/// The size of a command: how many elements it carries, and how many bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
struct Load {
    elements: usize,
    bytes: usize,
}

impl PushBatcher {
    /// Creates a batcher that pushes onto the left end of `list`.
    pub fn new(conn: &Conn, list: String) -> Self {
        let conn = conn.for_operation(Operation::Push).clone();
        Self(Arc::new(Pushes { conn, list, by_runtime: Mutex::default() }))
    }

    /// Pushes `elements` in one step, in their order.
    ///
    /// # Errors
    /// The errors of [`Conn::call`], for the command that carried the elements.
    pub fn push(&self, elements: Vec<Vec<u8>>) -> BoxFuture<'_, Result<(), Error>> {
        let pushing = async move {
            let at = self.0.conn.at(Operation::Push);
            let pushed = match self.0.conn.link_for(Operation::Push).await {
                Ok(link) => self.0.push(link, elements).await,
                Err(error) => {
                    let cmd = self.0.command(&[elements]);
                    let sent = self.0.conn.send_elsewhere(Operation::Push, &cmd, error);
                    sent.await.map(drop)
                }
            };
            pushed.map_err(|failed| failed.at(at))
        };
        pushing.boxed()
    }
}

impl Pushes {
    async fn push(self: &Arc<Self>, link: Link, elements: Elements) -> Sent {
        match self.begin(link, elements) {
            Begun::Alone(sending) => {
                let sent = sending.await;
                let runtime = Handle::current();
                // The reply also woke the task that sends the waiting pushes.
                if state_of(&mut self.states(), runtime.id()).is_served {
                    free_woken_task(&runtime);
                }
                sent
            }
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
            runtime.spawn(serving.run().boxed());
            free_woken_task(&runtime);
        }
        Begun::Waiting(answer)
    }

    async fn send(&self, pushes: &[Elements]) -> Sent {
        self.conn.send(Operation::Push, &self.command(pushes)).await.map(drop)
    }

    /// Creates a command that pushes `elements`. The first poll of its future sends it.
    fn send_on(&self, link: Link, elements: Elements) -> Sending {
        let (conn, cmd) = (self.conn.clone(), self.command(&[elements]));
        async move { conn.send_on(link, Operation::Push, &cmd).await.map(drop) }
            .boxed()
            .shared()
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

/// Lets another thread run the task that this thread spawned or woke last. Tokio
/// reserves that task for this thread, and the caller may keep the thread busy from
/// here on. Spawning an empty task makes Tokio reserve the empty task instead.
fn free_woken_task(runtime: &Handle) {
    runtime.spawn(async {});
}

fn state_of(
    states: &mut Vec<(runtime::Id, State)>,
    runtime: runtime::Id,
) -> &mut State {
    let at = states.iter().position(|(id, _)| *id == runtime).unwrap_or_else(|| {
        // Removes the states of runtimes that have no push under way or have ended.
        states.retain(|(_, state)| state.is_awaited());
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

    /// Whether a task or a caller awaits a push of this runtime. None does after the
    /// runtime has ended.
    fn is_awaited(&self) -> bool {
        let has_caller = |sending: &Sending| sending.strong_count() > Some(1);
        self.is_served || self.alone.as_ref().is_some_and(has_caller)
    }

    fn wait(&mut self, elements: Elements) -> oneshot::Receiver<Sent> {
        let (sent, answer) = oneshot::channel();
        self.waiting.push_back(Waiting { elements, sent });
        answer
    }

    /// Returns the elements of the next command, and the channels that report its
    /// result to the callers. Returns `None` if no push waits, so that the sending task
    /// ends.
    fn next(&mut self) -> Option<(Vec<Elements>, Vec<oneshot::Sender<Sent>>)> {
        let next = self.next_load();
        self.is_served = !next.is_empty();
        let parts = |one: Waiting| (one.elements, one.sent);
        self.is_served.then(|| next.into_iter().map(parts).unzip())
    }

    /// Removes the next waiting pushes from the state, as many as one command can
    /// carry. Withdrawn pushes are skipped.
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

/// The task that sends the waiting pushes of one runtime. If the runtime ends first,
/// these pushes get no result.
struct Serving {
    pushes: Arc<Pushes>,
    runtime: runtime::Id,
    is_over: bool,
}

impl Serving {
    /// Starts a task that sends the waiting pushes, unless one is running.
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

    /// Sends the waiting pushes, command after command, until no push waits.
    async fn run(mut self) {
        let alone = self.with_state(|state| state.alone.take());
        if let Some(alone) = alone {
            // The push that was sent alone reports this result to its own caller.
            let _ = alone.await;
        }
        loop {
            // Producers that just got their result may push again at once, and those
            // pushes can join the next command. If one of the producers blocks this
            // thread, the task continues on another.
            yield_now().await;
            let Some((pushes, answers)) = self.with_state(State::next) else { break };
            let sent = self.pushes.send(&pushes).await;
            for answer in answers {
                // Sending fails if the caller of the push was dropped.
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
    use futures_lite::future::poll_once;
    use relq_conformance::server::Server;
    use tokio::runtime::{Builder, Runtime};

    use super::*;
    use crate::RedisConfig;

    fn new_runtime() -> Runtime {
        Builder::new_current_thread().enable_all().build().unwrap()
    }

    /// A push that was dropped together with its runtime takes no memory for long.
    #[test]
    fn the_states_of_ended_runtimes_are_removed() {
        let server = Server::start();
        let config = RedisConfig::new(&server.url()).unwrap();
        let (runtime, elements) = (new_runtime(), || vec![b"job".to_vec()]);
        let conn = runtime.block_on(Conn::open("test", config)).unwrap();
        let batcher = PushBatcher::new(&conn, "list".to_owned());
        for _ in 0..3 {
            let cancelled = async {
                batcher.push(elements()).await.unwrap();
                assert!(poll_once(batcher.push(elements())).await.is_none());
            };
            new_runtime().block_on(cancelled);
        }

        runtime.block_on(batcher.push(elements())).unwrap();

        assert_eq!(batcher.0.states().len(), 1);
    }

    fn waiting(bytes: usize) -> (Waiting, oneshot::Receiver<Sent>) {
        waiting_with(vec![vec![0; bytes]])
    }

    fn waiting_with(elements: Elements) -> (Waiting, oneshot::Receiver<Sent>) {
        let (sent, answer) = oneshot::channel();
        (Waiting { elements, sent }, answer)
    }

    #[test]
    fn a_push_whose_caller_gave_up_is_not_sent() {
        let (kept, _answer) = waiting(1);
        let (withdrawn, given_up) = waiting(2);
        drop(given_up);
        let mut state = State { waiting: [withdrawn, kept].into(), ..State::default() };

        let sizes: Vec<_> =
            state.next_load().iter().map(|one| one.elements[0].len()).collect();

        assert_eq!(sizes, [1]);
    }

    /// R13: a push that does not fit is the first of the next command.
    #[test]
    fn a_command_carries_no_more_than_it_should_but_always_one() {
        let sizes = [MOST.bytes + 1, 1, MOST.bytes, 2, 3];
        let (all, _answers): (VecDeque<_>, Vec<_>) =
            sizes.into_iter().map(waiting).unzip();
        let mut state = State { waiting: all, ..State::default() };

        let loads = [(); 5].map(|()| -> Vec<_> {
            state.next_load().iter().map(|one| one.elements[0].len()).collect()
        });

        let expected = [&sizes[..1], &sizes[1..2], &sizes[2..3], &sizes[3..], &[]];
        assert_eq!(loads, expected, "the sizes of the pushes of each command");
    }

    /// Many small elements keep the server as busy as a few large ones.
    #[test]
    fn a_command_carries_no_more_elements_than_it_should() {
        let all = [600, 600, 400].map(|count| waiting_with(vec![vec![0]; count]));
        let (all, _answers): (VecDeque<_>, Vec<_>) = all.into_iter().unzip();
        let mut state = State { waiting: all, ..State::default() };

        let loads = [(); 3].map(|()| state.next_load().len());

        assert_eq!(loads, [1, 2, 0]);
    }
}
