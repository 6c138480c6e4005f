//! Servers that speak the Redis protocol and cannot store a queue: the error names the
//! kind of server, and the client does not retry for ever (R21).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::time::{Duration, Instant};

use relq_conformance::server::{Node, Server};
use relq_core::{
    Error,
    error::{Effect, Operation, RetryAdvice},
};
use relq_redis::{Cmd, Conn, RedisConfig, command};

/// The longest time that a test waits for a condition. A cluster forms in less.
const LIMIT: Duration = Duration::from_secs(60);

async fn open(node: &Node) -> Result<Conn, Error> {
    let url = format!("redis://{}", node.address());
    Conn::open("test", RedisConfig::new(&url).unwrap()).await
}

async fn answer(conn: &Conn, words: &[&str]) -> Result<String, Error> {
    let mut cmd = Cmd::new();
    cmd.arg(words);
    conn.call(Operation::Stats, &cmd).await?.text()
}

/// Asserts that the error is final, and that it says what the server is and which URL
/// it needs.
fn assert_wrong(error: &Error, words: [&str; 2]) {
    assert!(matches!(error, Error::WrongServer { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::No);
    assert_eq!(error.retry_advice(), RetryAdvice::Never);
    let message = error.full_message();
    assert!(words.iter().all(|words| message.contains(words)), "{message}");
}

/// R21: the error for a sentinel names it. A sentinel stores no queue.
#[tokio::test]
async fn a_sentinel_is_named() {
    let sentinel = Node::start("", &["--sentinel"]);

    let error = open(&sentinel).await.unwrap_err();

    assert_wrong(&error, ["a Redis Sentinel", "redis-sentinel://HOST:PORT/SERVICE"]);
}

/// R21: the error for a cluster node that redirects the client names this kind of
/// server.
#[tokio::test]
async fn a_node_that_leads_elsewhere_is_named() {
    let (here, there) = (Node::in_a_cluster(), Node::in_a_cluster());
    let (one, two) = (open(&here).await.unwrap(), open(&there).await.unwrap());
    answer(&one, &["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]).await.unwrap();
    answer(&two, &["CLUSTER", "ADDSLOTSRANGE", "8192", "16383"]).await.unwrap();
    let address = there.port().to_string();
    let bus = answer(&two, &["CLUSTER", "NODES"]).await.unwrap();
    let bus = bus.split('@').nth(1).unwrap().split([' ', ',']).next().unwrap();
    answer(&one, &["CLUSTER", "MEET", "127.0.0.1", &address, bus]).await.unwrap();
    let start = Instant::now();
    while !answer(&one, &["CLUSTER", "INFO"]).await.unwrap().contains("state:ok") {
        assert!(start.elapsed() < LIMIT, "the cluster does not form");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    // The other node has slot 12182, that of the key `foo`, so this one redirects.
    let error = answer(&one, &["SET", "foo", "1"]).await.unwrap_err();

    assert_wrong(&error, ["a node of a Redis Cluster", "redis-cluster://HOST:PORT"]);
}

/// R21: a cluster node that serves no slot yet is refused.
#[tokio::test]
async fn a_node_without_slots_cannot_be_used() {
    let node = Node::in_a_cluster();

    let conn = open(&node).await.unwrap();
    let error = answer(&conn, &["SET", "foo", "1"]).await.unwrap_err();

    assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::No);
    let message = error.full_message();
    assert!(message.contains("a node of a Redis Cluster"), "{message}");
}

/// Makes the server a replica. Nothing listens on port 1, so it never copies any data.
fn demote(server: &Server) {
    assert_eq!(server.command(&[b"REPLICAOF", b"127.0.0.1", b"1"]), b"+OK\r\n");
}

/// R21: a replica accepts no writes until it is promoted.
#[tokio::test]
async fn a_replica_only_reads() {
    let server = Server::start();
    let config = RedisConfig::new(&server.url()).unwrap();
    let conn = Conn::open("test", config).await.unwrap();
    demote(&server);

    let error = answer(&conn, &["SET", "foo", "1"]).await.unwrap_err();

    assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::No);
    assert_eq!(error.retry_advice(), RetryAdvice::Safe);
}

/// R21: after a refused write, calls leave the connection to a server that was demoted. A
/// new connection may lead to the new master.
#[tokio::test]
async fn a_demoted_server_is_left() {
    let server = Server::start();
    let config = RedisConfig::new(&server.url()).unwrap();
    let conn = Conn::open("test", config).await.unwrap();
    let before = connection(&conn).await;
    demote(&server);
    assert_eq!(connection(&conn).await, before, "the server keeps its connections");

    answer(&conn, &["SET", "foo", "1"]).await.unwrap_err();

    assert_ne!(connection(&conn).await, before);
}

/// The id of the connection that a call uses.
async fn connection(conn: &Conn) -> i64 {
    let mut id = command("CLIENT");
    id.arg("ID");
    conn.call(Operation::Stats, &id).await.unwrap().number().unwrap()
}

/// R21: a server that does not know a command that relq needs is refused.
#[tokio::test]
async fn a_server_that_lacks_a_command_is_named() {
    let server = Server::start();
    let config = RedisConfig::new(&server.url()).unwrap();
    let conn = Conn::open("test", config).await.unwrap();

    let error = answer(&conn, &["ASKED"]).await.unwrap_err();

    assert_wrong(&error, ["does not know a command", "plain server"]);
}
