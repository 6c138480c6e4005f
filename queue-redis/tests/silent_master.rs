//! Tests how a connection is opened when one of several servers names a master that does
//! not answer, or a replica: a sentinel that was cut off, or a node with an old view of its
//! cluster.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use relq_conformance::server::Node;
use relq_core::{QueueName, error::Operation};
use relq_redis::{Conn, Owner, RedisConfig, command};

/// How long opening may take, and how long a test waits for a condition.
const LIMIT: Duration = Duration::from_secs(30);

/// How long the server that knows the master stands still, so that the other one answers
/// first.
const HEAD_START: Duration = Duration::from_millis(500);

/// Opens the queue `emails`. The server `knowing`, which knows the master, is frozen for a
/// moment, so that the client hears of the wrong server first.
async fn open(url: &str, knowing: &Node) -> Conn {
    let config = RedisConfig::new(url).unwrap().connect_timeout(LIMIT).unwrap();
    let owner = Owner::new("zset", QueueName::new("emails").unwrap());
    let thawing = async {
        tokio::time::sleep(HEAD_START).await;
        knowing.thaw();
    };

    knowing.freeze();
    let (opened, ()) = tokio::join!(Conn::open_queue(owner, config, []), thawing);

    opened.unwrap()
}

/// R21: a sentinel that names a server which accepts connections and answers nothing does
/// not delay those that name the master.
#[tokio::test]
async fn a_sentinel_that_names_a_silent_server_delays_nothing() {
    let (silent, master) = (Node::start("", &[]), Node::start("", &[]));
    // This sentinel has no replica that it could promote.
    let (outdated, sentinel) = (sentinel_of(&silent), sentinel_of(&master));
    silent.freeze();
    let start = Instant::now();

    let conn = open(&url_of(&outdated, &sentinel), &sentinel).await;

    assert!(start.elapsed() < LIMIT / 2, "{:?}", start.elapsed());
    conn.call(Operation::Push, &set()).await.unwrap();
    assert_eq!(master.ask(&["GET", "emails"]), "$1\r\n1\r\n");
}

/// R21: a sentinel that was cut off during a fail-over names the earlier master, which is a
/// replica now. A client uses only a server that is a master by its own account.
#[tokio::test]
async fn a_sentinel_that_names_a_replica_is_not_believed() {
    let master = Node::start("", &[]);
    let following = format!("replicaof 127.0.0.1 {}\n", master.port());
    let replica = Node::start(&following, &[]);
    let (outdated, sentinel) = (sentinel_of(&replica), sentinel_of(&master));

    let conn = open(&url_of(&outdated, &sentinel), &sentinel).await;

    // A client that believed it would have named its connection there.
    let clients = replica.ask(&["CLIENT", "LIST"]);
    assert!(!clients.contains("name=relq:"), "{clients}");
    conn.call(Operation::Push, &set()).await.unwrap();
    assert_eq!(master.ask(&["GET", "emails"]), "$1\r\n1\r\n");
}

/// Starts a sentinel that takes the server for the master.
fn sentinel_of(node: &Node) -> Node {
    let watching = format!("sentinel monitor main {} 1\n", spaced(node));
    Node::start(&watching, &["--sentinel"])
}

fn url_of(outdated: &Node, sentinel: &Node) -> String {
    format!("redis-sentinel://{},{}/main", outdated.address(), sentinel.address())
}

/// R21: a node of a cluster that names a silent server as the master does not delay a node
/// that is the master itself.
#[tokio::test]
async fn a_node_that_names_a_silent_server_delays_nothing() {
    let [silent, outdated, master] = [(); 3].map(|()| Node::in_a_cluster());
    for node in [&silent, &master] {
        node.ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
    }
    let bus = silent.ask(&["CONFIG", "GET", "cluster-port"]);
    let port = silent.port().to_string();
    outdated.ask(&["CLUSTER", "MEET", "127.0.0.1", &port, bus.lines().last().unwrap()]);
    for node in [&outdated, &master] {
        until_formed(node).await;
    }
    silent.freeze();
    let url = format!("redis-cluster://{},{}", outdated.address(), master.address());
    let start = Instant::now();

    let conn = open(&url, &master).await;

    assert!(start.elapsed() < LIMIT / 2, "{:?}", start.elapsed());
    conn.call(Operation::Push, &set()).await.unwrap();
    assert_eq!(master.ask(&["GET", "emails"]), "$1\r\n1\r\n");
}

async fn until_formed(node: &Node) {
    let start = Instant::now();
    while !node.ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok") {
        assert!(start.elapsed() < LIMIT, "the cluster does not form");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

fn spaced(node: &Node) -> String {
    node.address().replace(':', " ")
}

fn set() -> relq_redis::Cmd {
    let mut set = command("SET");
    set.arg("emails").arg(1);
    set
}
