//! Tests of the fault proxy on a real server: what it forwards, what each fault does,
//! and which clock scripts and commands see.

use relq_fault_proxy::server::Server;

#[path = "fault_proxy/client.rs"]
mod client;
#[path = "fault_proxy/faults.rs"]
mod faults;
#[path = "fault_proxy/ghosts.rs"]
mod ghosts;
#[path = "fault_proxy/parking.rs"]
mod parking;
#[path = "fault_proxy/queue.rs"]
mod queue;
#[path = "fault_proxy/through.rs"]
mod through;
#[path = "fault_proxy/time.rs"]
mod time;
#[path = "fault_proxy/waiting.rs"]
mod waiting;

use client::Client;
use relq_fault_proxy::proxy::{Endpoint, FaultProxy, VirtualClock};

/// A Redis server, a fault proxy in front of it, and an actor that connects through the
/// proxy.
struct ProxyFixture {
    proxy: FaultProxy,
    clock: VirtualClock,
    actor: Endpoint,
    server: Server,
}

impl ProxyFixture {
    fn new() -> Self {
        let (server, clock) = (Server::start(), VirtualClock::new());
        let proxy = FaultProxy::start(server.socket(), clock.clone())
            .expect("the proxy starts");
        let actor = proxy.actor("worker").expect("a socket");
        Self { proxy, clock, actor, server }
    }

    async fn client(&self) -> Client {
        Client::connect(self.actor.url()).await
    }

    /// Returns the server's own reply, without the proxy.
    fn ask(&self, command: &str) -> String {
        let words: Vec<_> = command.split(' ').map(str::as_bytes).collect();
        String::from_utf8(self.server.command(&words)).expect("it answers text")
    }
}
