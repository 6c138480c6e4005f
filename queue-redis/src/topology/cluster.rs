//! Finds the master of a slot in a Redis Cluster.

use std::{
    collections::{BTreeSet, HashMap},
    fmt, io,
    ops::RangeInclusive,
    sync::{Mutex, MutexGuard, PoisonError},
};

use futures_util::{
    FutureExt as _,
    stream::{FuturesUnordered, StreamExt as _},
};
use redis::{ErrorKind, RedisError, RedisResult, Value, from_redis_value_ref};
use tokio::time::timeout;

use super::{
    Address,
    address::{Tried, listed},
};
use crate::{RedisConfig, error::MISCONFIGURED, link::Link};

/// The nodes of a cluster, as far as this client knows them.
pub(crate) struct Cluster {
    /// The nodes that the URL names.
    named: Vec<Address>,
    learned: Mutex<Learned>,
}

/// The reports of the cluster's nodes. Clients of several queues share them.
#[derive(Default)]
struct Learned {
    /// All nodes that an answer named. Some of them may still run when those of the URL
    /// do not.
    nodes: Vec<Address>,
    /// For each slot, the master that the last redirection named. It is used for one
    /// new connection.
    moved: HashMap<u16, Address>,
}

/// The answer of one node: which master serves which slots, and which nodes the cluster
/// has.
struct Answer {
    node: Address,
    link: Link,
    masters: Vec<(RangeInclusive<u16>, Address)>,
    nodes: Vec<Address>,
}

impl Answer {
    fn master_of(&self, slot: u16) -> Option<Address> {
        let mut masters = self.masters.iter();
        let (_, master) = masters.find(|(range, _)| range.contains(&slot))?;
        Some(master.clone())
    }
}

impl Cluster {
    pub(super) fn new(named: Vec<Address>) -> Self {
        Self { named, learned: Mutex::default() }
    }

    /// Remembers that a node named `address` as the master of the slot.
    pub(crate) fn moved(&self, slot: u16, address: Address) {
        self.learned().moved.insert(slot, address);
    }

    /// Connects to the master of the configuration's slot.
    ///
    /// # Errors
    /// When no node can be reached, when none of them names a master of the slot, or
    /// when the configuration is not for a queue.
    pub(crate) async fn connect(&self, config: &RedisConfig) -> RedisResult<Link> {
        let slot = config.slot.ok_or_else(without_queue)?;
        let moved = self.learned().moved.remove(&slot);
        if let Some(master) = moved
            && let Ok(link) = connect_to(config, &master).await
        {
            return Ok(link);
        }
        let (nodes, tried) = (self.nodes(), Tried::default());
        let finding = nodes.iter().map(|node| self.find(config, node, slot, &tried));
        let mut found: FuturesUnordered<_> = finding.collect();
        let mut failure = None;
        while let Some(found) = found.next().await {
            match found {
                Ok(None) => {}
                Ok(Some(link)) => return Ok(link),
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(|| without_master(slot)))
    }

    /// Returns the masters that have slots, in the order of their addresses, as the
    /// first node that answers names them.
    ///
    /// # Errors
    /// When no node can be reached, or when none of them names a master.
    pub(crate) async fn masters(
        &self,
        config: &RedisConfig,
    ) -> RedisResult<Vec<Address>> {
        let nodes = self.nodes();
        let asking = nodes.iter().map(|node| {
            let answer = timeout(config.connect_timeout, ask(config, node));
            answer.map(|answer| {
                answer.unwrap_or_else(|late| Err(io::Error::from(late).into()))
            })
        });
        let mut answers: FuturesUnordered<_> = asking.collect();
        let mut failure = None;
        while let Some(answer) = answers.next().await {
            match answer {
                Ok(Answer { masters, .. }) if !masters.is_empty() => {
                    let masters = masters.into_iter().map(|(_, master)| master);
                    return Ok(masters.collect::<BTreeSet<_>>().into_iter().collect());
                }
                Ok(_) => {}
                Err(error) => failure = Some(error),
            }
        }
        Err(failure.unwrap_or_else(without_slots))
    }

    /// Connects to the master of the slot that a node names. `None` if another node has
    /// named the same one. All nodes are asked and all masters tried at the same time, so
    /// that a node with an old view of the cluster delays nothing.
    async fn find(
        &self,
        config: &RedisConfig,
        node: &Address,
        slot: u16,
        tried: &Tried,
    ) -> RedisResult<Option<Link>> {
        let answer = ask(config, node).await?;
        let master = answer.master_of(slot);
        if !answer.nodes.is_empty() {
            self.learned().nodes = answer.nodes;
        }
        let master = master.ok_or_else(|| without_master(slot))?;
        if master == answer.node {
            return Ok(Some(answer.link));
        }
        if !tried.is_first(&master) {
            return Ok(None);
        }
        connect_to(config, &master).await.map(Some)
    }

    /// The nodes to ask: those of the URL, and those that an answer named.
    fn nodes(&self) -> Vec<Address> {
        let mut nodes = self.named.clone();
        let learned = self.learned();
        nodes.extend(
            learned.nodes.iter().filter(|it| !self.named.contains(it)).cloned(),
        );
        nodes
    }

    fn learned(&self) -> MutexGuard<'_, Learned> {
        self.learned.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

async fn connect_to(config: &RedisConfig, node: &Address) -> RedisResult<Link> {
    Link::connect(config, node, config.info.redis_settings()).await
}

async fn ask(config: &RedisConfig, node: &Address) -> RedisResult<Answer> {
    let mut link = connect_to(config, node).await?;
    let mut asking = redis::cmd("CLUSTER");
    asking.arg("SLOTS");
    let slots: RedisResult<Value> = link.ask(&asking, config.connect_timeout).await;
    let slots = slots.map_err(|error| explained(node, error))?;
    let (mut masters, mut nodes) = (Vec::new(), Vec::new());
    for range in slots.as_sequence().unwrap_or_default() {
        let Some([first, last, servers @ ..]) = range.as_sequence() else { continue };
        let (first, last): (u16, u16) =
            (from_redis_value_ref(first)?, from_redis_value_ref(last)?);
        let mut servers = servers.iter().filter_map(|server| read(server, node));
        let Some(master) = servers.next() else { continue };
        masters.push((first..=last, master.clone()));
        nodes.push(master);
        nodes.extend(servers);
    }
    Ok(Answer { node: node.clone(), link, masters, nodes })
}

/// Reads the host and port of one server from the reply to CLUSTER SLOTS.
fn read(server: &Value, sender: &Address) -> Option<Address> {
    let [host, port, ..] = server.as_sequence()? else { return None };
    let host: Option<String> = from_redis_value_ref(host).ok()?;
    let port = from_redis_value_ref(port).ok()?;
    Some(Address::told(&host.unwrap_or_default(), port, sender))
}

/// Returns the error for a server that is not a cluster node: it says which form of URL
/// the server needs.
fn explained(node: &Address, error: RedisError) -> RedisError {
    let is_plain =
        error.detail().is_some_and(|it| it.contains("cluster support disabled"));
    if !is_plain {
        return error;
    }
    let text = format!("{node} is not a node of a Redis Cluster: use redis://{node}");
    (ErrorKind::InvalidClientConfig, MISCONFIGURED, text).into()
}

fn without_queue() -> RedisError {
    let text = "a call on a cluster must be for one queue";
    (ErrorKind::InvalidClientConfig, MISCONFIGURED, text.to_owned()).into()
}

fn without_slots() -> RedisError {
    let text = "no node of the cluster names a master";
    io::Error::new(io::ErrorKind::NotConnected, text).into()
}

fn without_master(slot: u16) -> RedisError {
    let text = format!("no node of the cluster names a master of the slot {slot}");
    io::Error::new(io::ErrorKind::NotConnected, text).into()
}

impl fmt::Display for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&listed(&self.named))
    }
}

impl fmt::Debug for Cluster {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Cluster({self})")
    }
}
