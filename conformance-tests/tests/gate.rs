//! The gate, judged on a real server: what passes, what each fault does, and whose
//! time it is.

use conformance_tests::server::Server;

#[path = "gate/client.rs"]
mod client;
#[path = "gate/faults.rs"]
mod faults;
#[path = "gate/ghosts.rs"]
mod ghosts;
#[path = "gate/parking.rs"]
mod parking;
#[path = "gate/queue.rs"]
mod queue;
#[path = "gate/through.rs"]
mod through;
#[path = "gate/time.rs"]
mod time;
#[path = "gate/waiting.rs"]
mod waiting;

use client::Client;
use conformance_tests::fault::{Endpoint, Gate, VirtualClock};

/// A server of its own, a gate before it, and one actor.
struct Stage {
    gate: Gate,
    clock: VirtualClock,
    actor: Endpoint,
    server: Server,
}

impl Stage {
    fn new() -> Self {
        let (server, clock) = (Server::start(), VirtualClock::new());
        let gate =
            Gate::start(server.socket(), clock.clone()).expect("the gate starts");
        let actor = gate.actor("worker").expect("a socket");
        Self { gate, clock, actor, server }
    }

    async fn client(&self) -> Client {
        Client::connect(self.actor.url()).await
    }

    /// What the server itself answers, past the gate.
    fn ask(&self, command: &str) -> String {
        let words: Vec<_> = command.split(' ').map(str::as_bytes).collect();
        String::from_utf8(self.server.command(&words)).expect("it answers text")
    }
}
