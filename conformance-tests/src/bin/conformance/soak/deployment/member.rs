//! A server of the soak that works together with others, behind its proxies.

use std::{net::Ipv4Addr, time::Duration};

use relq_conformance::server::{Node, free_port};

use super::links::{self, Links, PROXY, Port};
use crate::SuiteResult;

/// The configuration of each server that stores data. The append-only file survives
/// SIGKILL without syncs: the server hands each write to the system before it answers.
/// `appendfsync everysec` would not, because the server postpones writes during a sync.
pub(super) const STORING: &str = "appendonly yes\nappendfsync no\n\
     repl-diskless-sync-delay 0\nreplica-announce-ip 127.0.0.1\n";

/// A server in protected mode accepts connections from 127.0.0.1 only, and the proxies
/// connect from another loopback address.
const PROXIED: &str = "protected-mode no\n";

/// The time between two looks at a server.
const LOOK_EVERY: Duration = Duration::from_millis(50);

/// A server, the port that it announces, and the address from which it connects to
/// others.
pub(in crate::soak) struct Member {
    pub(super) node: Node,
    pub(super) port: u16,
    pub(super) bus: u16,
    pub(super) source: Ipv4Addr,
}

/// The announced ports of a server that is about to start.
pub(super) struct Announced {
    pub(super) port: u16,
    pub(super) bus: u16,
    /// The port on which a node of a cluster listens for the other nodes.
    pub(super) own_bus: u16,
}

impl Member {
    /// Starts the server with that index. `configure` returns its configuration.
    pub(super) fn start(
        links: &Links,
        index: u8,
        arguments: &[&str],
        configure: impl Fn(&Announced) -> String,
    ) -> SuiteResult<Self> {
        let (clients, bus) = (Port::reserve()?, Port::reserve()?);
        let announced = Announced {
            port: clients.number()?,
            bus: bus.number()?,
            own_bus: free_port(),
        };
        let source = links::source_of(index);
        let lines = configure(&announced);
        let node = Node::start(
            &format!("{PROXIED}bind-source-addr {source}\n{lines}"),
            arguments,
        );
        links.carry(clients, source, node.port())?;
        links.carry(bus, source, announced.own_bus)?;
        Ok(Self { node, port: announced.port, bus: announced.bus, source })
    }

    /// The address that clients use, as `HOST:PORT`.
    pub(super) fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Sends a command, and fails if the reply is not `+OK`.
    pub(super) fn order(&self, words: &[&str]) -> SuiteResult<()> {
        let reply = self.node.try_ask(words)?;
        if reply == "+OK\r\n" {
            return Ok(());
        }
        Err(format!("{} answers {words:?} with {reply:?}", self.address()).into())
    }

    /// The value of a field in the reply to `INFO replication`.
    pub(super) fn replication(&self) -> SuiteResult<Replication> {
        Ok(Replication(self.node.try_ask(&["INFO", "replication"])?))
    }

    /// Fails if a client of relq has connected without a proxy.
    pub(super) fn check_clients(&self) -> Result<(), String> {
        let list = self.node.try_ask(&["CLIENT", "LIST"]).unwrap_or_default();
        let proxied = format!(" addr={PROXY}:");
        let past = list
            .lines()
            .find(|line| line.contains(" name=relq:") && !line.contains(&proxied));
        past.map_or(Ok(()), |line| Err(format!("a client bypasses the proxy: {line}")))
    }
}

/// The reply to `INFO replication`.
pub(super) struct Replication(String);

impl Replication {
    pub(super) fn field(&self, name: &str) -> Option<&str> {
        self.0.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':'))
    }

    pub(super) fn is_master(&self) -> bool {
        self.field("role") == Some("master")
    }

    /// How many bytes of writes the server has made or received.
    fn offset(&self, name: &str) -> u64 {
        self.field(name).and_then(|offset| offset.parse().ok()).unwrap_or(0)
    }
}

/// Fails with the reason if one of the replicas does not have all that the master had
/// at the beginning of this call.
pub(super) fn replicas_are_in_step(
    master: &Member,
    replicas: &[&Member],
) -> Result<(), String> {
    let look = |member: &Member| {
        member.replication().map_err(|error| format!("{}: {error}", member.address()))
    };
    let there = look(master)?;
    let online = there.0.matches("state=online").count();
    if !there.is_master() || online != replicas.len() {
        return Err(format!("{} has {online} replicas online", master.address()));
    }
    for replica in replicas {
        let here = look(replica)?;
        let (has, of) =
            (here.offset("slave_repl_offset"), there.offset("master_repl_offset"));
        if here.field("master_link_status") != Some("up") || has < of {
            return Err(format!(
                "the replica {} has {has} of {of} bytes, and its link is {:?}",
                replica.address(),
                here.field("master_link_status")
            ));
        }
    }
    Ok(())
}

/// Looks again and again until `holds` returns `Ok`.
///
/// # Errors
/// The last reason, if `limit` has passed.
pub(super) fn wait_until(
    what: &str,
    limit: Duration,
    mut holds: impl FnMut() -> Result<(), String>,
) -> SuiteResult<()> {
    let start = std::time::Instant::now();
    while let Err(reason) = holds() {
        if start.elapsed() > limit {
            return Err(format!("{what} not within {limit:?}: {reason}").into());
        }
        std::thread::sleep(LOOK_EVERY);
    }
    Ok(())
}
