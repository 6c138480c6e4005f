//! A private cluster of Redis servers, each of which owns an equal share of the slots.

use std::time::{Duration, Instant};

use redis::FromRedisValue;
use relq::QueueName;

use crate::{
    failure::{CommandResult, Failure},
    meter::{Meter, failed},
    server::Server,
};

const SLOTS: usize = 16_384;

/// How long the cluster may take to form.
const FORM_LIMIT: Duration = Duration::from_secs(30);

/// How many names are tried to find one whose parts are on different nodes. Of three
/// parts, this holds for two names in nine.
const NAMES: usize = 10_000;

/// A private cluster without replicas, which ends when this is dropped.
pub(super) struct Cluster {
    nodes: Vec<Server>,
    /// One for each node, in the same order.
    pub(super) meters: Vec<Meter>,
}

impl Cluster {
    /// Starts the nodes, and waits until all of them serve.
    pub(super) async fn start(nodes: usize) -> CommandResult<Self> {
        let mut cluster = Self { nodes: Vec::new(), meters: Vec::new() };
        for _ in 0..nodes {
            let node = Server::start_node().await?;
            cluster.meters.push(Meter::new(node.connect().await?));
            cluster.nodes.push(node);
        }
        for (at, node) in cluster.nodes.iter().enumerate() {
            let (first, next) = (at * SLOTS / nodes, (at + 1) * SLOTS / nodes);
            let (first, last) = (first.to_string(), (next - 1).to_string());
            let () = ask(node, &["CLUSTER", "ADDSLOTSRANGE", &first, &last]).await?;
        }
        cluster.meet().await?;
        cluster.wait_until_formed().await?;
        Ok(cluster)
    }

    async fn meet(&self) -> CommandResult {
        for node in self.nodes.iter().skip(1) {
            let settings: Vec<String> =
                ask(node, &["CONFIG", "GET", "cluster-port"]).await?;
            let bus = settings.last().map(String::as_str).unwrap_or_default();
            let (host, port) = node.address().split_once(':').unwrap_or_default();
            let meet = ["CLUSTER", "MEET", host, port, bus];
            let () = ask(&self.nodes[0], &meet).await?;
        }
        Ok(())
    }

    async fn wait_until_formed(&self) -> CommandResult {
        let began = Instant::now();
        let known = format!("cluster_known_nodes:{}\r\n", self.nodes.len());
        for node in &self.nodes {
            loop {
                let info: String = ask(node, &["CLUSTER", "INFO"]).await?;
                if info.contains("cluster_state:ok") && info.contains(&known) {
                    break;
                }
                if began.elapsed() > FORM_LIMIT {
                    let address = node.address();
                    return Err(Failure::Failed(format!(
                        "the cluster did not form, as {address} says: {info}"
                    )));
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        }
        Ok(())
    }

    /// The URL of the cluster for a queue of that backend.
    pub(super) fn url_of(&self, backend: &str, partitions: u16) -> String {
        let hosts: Vec<_> = self.nodes.iter().map(Server::address).collect();
        let hosts = hosts.join(",");
        let option = match partitions {
            1 => String::new(),
            several => format!("?partitions={several}"),
        };
        format!("{backend}+redis-cluster://{hosts}{option}")
    }

    /// Finds a queue whose parts are on different nodes. Its name begins with `prefix`.
    pub(super) async fn spread(
        &self,
        prefix: &str,
        partitions: u16,
    ) -> CommandResult<QueueName> {
        for number in 0..NAMES {
            let name = format!("{prefix}-{number}");
            let mut nodes = vec![self.node_of(&name).await?];
            for part in 1..partitions {
                nodes.push(self.node_of(&format!("{name}:{part}")).await?);
            }
            nodes.sort_unstable();
            nodes.dedup();
            if nodes.len() == usize::from(partitions) {
                let named = QueueName::new(name);
                return named.map_err(|error| Failure::Failed(error.to_string()));
            }
        }
        Err(Failure::Failed(format!(
            "no queue was found whose {partitions} parts are on different nodes"
        )))
    }

    /// The number of the node that owns the slot of this part of a queue.
    async fn node_of(&self, part: &str) -> CommandResult<usize> {
        let slot: usize = ask(&self.nodes[0], &["CLUSTER", "KEYSLOT", part]).await?;
        let nodes = self.nodes.len();
        let owner = (0..nodes).find(|at| slot < (at + 1) * SLOTS / nodes);
        Ok(owner.unwrap_or(0))
    }
}

async fn ask<T: FromRedisValue>(node: &Server, command: &[&str]) -> CommandResult<T> {
    let mut connection = node.connect().await?;
    let answer =
        redis::cmd(command[0]).arg(&command[1..]).query_async(&mut connection).await;
    answer.map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn the_parts_of_a_queue_are_on_different_nodes() {
        let cluster = Cluster::start(3).await.unwrap();
        let name = cluster.spread("q", 3).await.unwrap();

        let queue = relq::connect(&cluster.url_of("zset", 3), &name).await.unwrap();
        for _ in 0..6 {
            queue.push(&["job".into()], None).await.unwrap();
        }

        let mut owners = Vec::new();
        for part in ["", ":1", ":2"].map(|number| format!("{name}{number}")) {
            let owner = cluster.node_of(&part).await.unwrap();
            let jobs: u64 = ask(&cluster.nodes[owner], &["LLEN", &part]).await.unwrap();
            assert_eq!(jobs, 2, "{part}");
            owners.push(owner);
        }
        owners.sort_unstable();
        assert_eq!(owners, [0, 1, 2]);
    }
}
