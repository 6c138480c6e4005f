//! The connection of each runtime that calls: opened by its first call, and again when it
//! has broken.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};

use futures_util::{
    FutureExt as _,
    future::{BoxFuture, Shared},
};
use redis::RedisError;
use tokio::runtime::{self, Handle};

use super::Inner;
use crate::{link::Link, opening::Opening};

/// The connection of one runtime: it is open, or a task is opening it.
#[derive(Clone)]
pub(super) enum State {
    Open(Link),
    Connecting(Connecting),
}

/// An attempt to connect. All calls that wait for it get its result, so that a hundred
/// calls to an unreachable server wait for one timeout, not for a hundred.
pub(super) type Connecting = Shared<BoxFuture<'static, Result<Link, RedisError>>>;

impl Inner {
    /// The connection of the given runtime; `None` if it has none, or a closed one.
    pub(super) fn state(&self, runtime: runtime::Id) -> Option<State> {
        let states = lock(&self.by_runtime);
        let (_, state) = states.iter().find(|(id, _)| *id == runtime)?;
        state.if_usable()
    }

    pub(super) fn state_or_connect(self: &Arc<Self>, runtime: &Handle) -> State {
        if let Some(state) = self.state(runtime.id()) {
            return state;
        }
        let mut states = lock(&self.by_runtime);
        // This also removes the connections of runtimes that have ended.
        states.retain(|(_, state)| state.if_usable().is_some());
        if let Some((_, state)) = states.iter().find(|(id, _)| *id == runtime.id()) {
            return state.clone();
        }
        let connecting = self.connect(runtime.id());
        // Connecting is a task of its own, so that it continues if its callers are
        // dropped.
        runtime.spawn(connecting.clone().map(drop).boxed());
        let state = State::Connecting(connecting);
        states.push((runtime.id(), state.clone()));
        state
    }

    fn connect(self: &Arc<Self>, runtime: runtime::Id) -> Connecting {
        let (config, owner) = (self.config.clone(), self.owner.clone());
        let scripts = self.scripts.clone();
        let inner = Arc::downgrade(self);
        let attempt = async move {
            let opening = Opening::of_calls(owner.as_ref(), &scripts);
            let outcome = opening.open(&config).await;
            Self::connected(&inner, runtime, outcome.as_ref().ok());
            outcome
        };
        attempt.boxed().shared()
    }

    /// Stores the connection that was opened; `None` means that opening failed, so that
    /// the next call tries again.
    fn connected(inner: &Weak<Self>, runtime: runtime::Id, link: Option<&Link>) {
        let Some(inner) = inner.upgrade() else { return };
        let mut states = lock(&inner.by_runtime);
        states.retain(|(id, _)| *id != runtime);
        states.extend(link.map(|link| (runtime, State::Open(link.clone()))));
    }
}

impl State {
    fn if_usable(&self) -> Option<Self> {
        let is_usable = match self {
            Self::Open(link) => link.is_open(),
            // The connecting task keeps a clone of this future until its runtime ends.
            // A count of one means that the runtime has ended.
            Self::Connecting(outcome) => outcome.strong_count() > Some(1),
        };
        is_usable.then(|| self.clone())
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use relq_conformance::server::Server;
    use relq_core::error::Operation;
    use tokio::runtime::Runtime;

    use super::lock;
    use crate::{Conn, RedisConfig, command};

    fn runtime() -> Runtime {
        tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
    }

    /// A program may start a runtime for each of its calls. The connections of runtimes that
    /// have ended, and those that such a runtime began to open, are not kept.
    #[test]
    fn connections_of_runtimes_that_have_ended_are_dropped() {
        let server = Server::start();
        let config = RedisConfig::new(&server.url()).unwrap();
        let conn = runtime().block_on(Conn::open("test", config)).unwrap();

        for _ in 0..3 {
            let called =
                runtime().block_on(conn.call(Operation::Stats, &command("PING")));
            called.unwrap();
            assert_eq!(lock(&conn.0.by_runtime).len(), 1, "open connections");
        }
        for _ in 0..3 {
            conn.0.state_or_connect(runtime().handle());
            assert_eq!(lock(&conn.0.by_runtime).len(), 1, "connections being opened");
        }
    }
}
