//! The state that all connections of a proxy share.

use std::{
    collections::HashMap,
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use relq_core::environment::Clock as _;

use super::{
    clock::VirtualClock, dead_connections::DeadConnections, endpoint::Endpoint,
    gate::Gate, ledger::Ledger, request::Request, script::Scripts, server::Server,
    traffic::Traffic,
};

/// The state that all connections of a proxy share.
pub(crate) struct Shared {
    pub(crate) server: Server,
    pub(crate) clock: VirtualClock,
    pub(crate) ledger: Ledger,
    pub(crate) traffic: Arc<Traffic>,
    /// The blocking commands that the server holds at the moment, in the order in which
    /// it began to hold them.
    pub(super) held: Mutex<Vec<HeldCommand>>,
    /// How many commands the server has held so far.
    held_so_far: AtomicU64,
    pub(crate) gate: Gate,
    scripts: Mutex<Scripts>,
    pub(super) actors: Mutex<HashMap<String, Endpoint>>,
    pub(crate) dead_connections: DeadConnections,
    pub(super) listener: OnceLock<Listener>,
}

/// A callback that sees each request of each actor.
type Listener = Box<dyn Fn(&Request) + Send + Sync>;

/// A command that the server holds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HeldCommand {
    /// The name of the actor that sent it.
    pub actor: String,
    /// Its name.
    pub command: String,
    /// A digest of its arguments.
    pub arguments: u64,
    /// The server's id of its connection.
    client: String,
}

impl Shared {
    pub(super) fn new(server: Server, clock: VirtualClock) -> Self {
        Self {
            server,
            clock,
            ledger: Ledger::new(),
            traffic: Arc::new(Traffic::new()),
            held: Mutex::default(),
            held_so_far: AtomicU64::new(0),
            gate: Gate::default(),
            scripts: Mutex::default(),
            actors: Mutex::default(),
            dead_connections: DeadConnections::default(),
            listener: OnceLock::new(),
        }
    }

    /// Lists a command that the server holds, until the value is dropped.
    pub(crate) fn holds(
        &self,
        actor: &str,
        request: &Request,
        client: &str,
    ) -> Holds<'_> {
        let held = HeldCommand {
            actor: actor.to_owned(),
            command: request.word(0),
            arguments: request.digest(),
            client: client.to_owned(),
        };
        let number = self.held_so_far.fetch_add(1, Ordering::Relaxed);
        lock(&self.held).push(held);
        self.traffic.ends(1);
        Holds { shared: self, client: client.to_owned(), number }
    }

    /// Passes a request to the listener, if there is one.
    pub(crate) fn show(&self, request: &Request) {
        if let Some(listener) = self.listener.get() {
            listener(request);
        }
    }

    pub(crate) fn scripts(&self) -> MutexGuard<'_, Scripts> {
        lock(&self.scripts)
    }

    pub(crate) fn deadline(&self, limit: Duration) -> Duration {
        self.clock.elapsed().saturating_add(limit)
    }
}

/// Removes a command from the list of commands that the server holds when it is
/// dropped.
pub(crate) struct Holds<'a> {
    shared: &'a Shared,
    client: String,
    /// How many commands the server had held before.
    pub(crate) number: u64,
}

impl Drop for Holds<'_> {
    fn drop(&mut self) {
        lock(&self.shared.held).retain(|held| held.client != self.client);
        self.shared.traffic.adds(1);
    }
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
