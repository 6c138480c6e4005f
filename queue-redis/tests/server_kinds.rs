//! Servers that speak Redis and cannot store a queue: the error names the kind, and the
//! client does not retry for ever (R21).
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    fs,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use relq_conformance::server::{Server, free_port};
use relq_core::{
    Error,
    error::{Effect, Operation, RetryAdvice},
};
use relq_redis::{Cmd, Conn, RedisConfig};
use tempfile::TempDir;

/// Longer than a cluster of two nodes takes to form.
const LIMIT: Duration = Duration::from_secs(60);

/// A `redis-server` with a configuration of its own. It is killed when this is dropped.
struct Node {
    _folder: TempDir,
    child: Child,
    port: u16,
}

impl Node {
    /// Starts the server with additional lines of configuration and arguments.
    fn start(lines: &str, arguments: &[&str]) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let (port, file) = (free_port(), folder.path().join("redis.conf"));
        let dir = folder.path().display();
        fs::write(&file, format!("port {port}\nbind 127.0.0.1\ndir {dir}\n{lines}"))
            .unwrap();
        let child = Command::new("redis-server")
            .arg(file)
            .args(arguments)
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts: install Redis 7.0 or later");
        Self { _folder: folder, child, port }
    }

    fn in_a_cluster() -> Self {
        let bus = free_port();
        Self::start(
            &format!("cluster-enabled yes\ncluster-port {bus}\nsave \"\"\n"),
            &[],
        )
    }

    /// Opens a connection once the server listens.
    async fn open(&self) -> Result<Conn, Error> {
        let start = Instant::now();
        let url = format!("redis://127.0.0.1:{}", self.port);
        loop {
            let config = RedisConfig::new(&url).unwrap();
            match Conn::open("test", config).await {
                Err(Error::Unavailable { .. }) if start.elapsed() < LIMIT => {
                    tokio::time::sleep(Duration::from_millis(20)).await;
                }
                opened => return opened,
            }
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        // The process may have ended already.
        self.child.kill().ok();
        self.child.wait().ok();
    }
}

async fn answer(conn: &Conn, words: &[&str]) -> Result<String, Error> {
    let mut cmd = Cmd::new();
    cmd.arg(words);
    conn.call(Operation::Stats, &cmd).await?.text()
}

fn assert_wrong(error: &Error, words: &str) {
    assert!(matches!(error, Error::WrongServer { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::No);
    assert_eq!(error.retry_advice(), RetryAdvice::Never);
    let message = error.full_message();
    assert!(message.contains(words) && message.contains("plain server"), "{message}");
}

/// R21: a sentinel supports few commands, and stores no queue.
#[tokio::test]
async fn a_sentinel_is_named() {
    let sentinel = Node::start("", &["--sentinel"]);

    let error = sentinel.open().await.unwrap_err();

    assert_wrong(&error, "a Redis Sentinel");
}

/// R21: a node of a cluster that redirects the client to another node.
#[tokio::test]
async fn a_node_that_leads_elsewhere_is_named() {
    let (here, there) = (Node::in_a_cluster(), Node::in_a_cluster());
    let (one, two) = (here.open().await.unwrap(), there.open().await.unwrap());
    answer(&one, &["CLUSTER", "ADDSLOTSRANGE", "0", "8191"]).await.unwrap();
    answer(&two, &["CLUSTER", "ADDSLOTSRANGE", "8192", "16383"]).await.unwrap();
    let address = there.port.to_string();
    let bus = answer(&two, &["CLUSTER", "NODES"]).await.unwrap();
    let bus = bus.split('@').nth(1).unwrap().split([' ', ',']).next().unwrap();
    answer(&one, &["CLUSTER", "MEET", "127.0.0.1", &address, bus]).await.unwrap();
    let start = Instant::now();
    while !answer(&one, &["CLUSTER", "INFO"]).await.unwrap().contains("state:ok") {
        assert!(start.elapsed() < LIMIT, "the cluster does not form");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }

    // The slot of `foo` is 12182.
    let error = answer(&one, &["SET", "foo", "1"]).await.unwrap_err();

    assert_wrong(&error, "a node of a Redis Cluster");
}

/// R21: a node of a cluster that serves no slot yet.
#[tokio::test]
async fn a_node_without_slots_cannot_be_used() {
    let node = Node::in_a_cluster();

    let conn = node.open().await.unwrap();
    let error = answer(&conn, &["SET", "foo", "1"]).await.unwrap_err();

    assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::No);
    let message = error.full_message();
    assert!(message.contains("a node of a Redis Cluster"), "{message}");
}

/// R21: a replica accepts no writes until it is promoted.
#[tokio::test]
async fn a_replica_only_reads() {
    let server = Server::start();
    let config = RedisConfig::new(&server.url()).unwrap();
    let conn = Conn::open("test", config).await.unwrap();
    // Nothing listens on port 1, so the replica never copies any data.
    server.command(&[b"REPLICAOF", b"127.0.0.1", b"1"]);

    let error = answer(&conn, &["SET", "foo", "1"]).await.unwrap_err();

    assert!(matches!(error, Error::ReadOnly { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::No);
    assert_eq!(error.retry_advice(), RetryAdvice::Safe);
}

/// R21: a server that does not know a command is refused as unsupported.
#[tokio::test]
async fn a_server_that_lacks_a_command_is_named() {
    let server = Server::start();
    let config = RedisConfig::new(&server.url()).unwrap();
    let conn = Conn::open("test", config).await.unwrap();

    let error = answer(&conn, &["ASKED"]).await.unwrap_err();

    assert_wrong(&error, "does not know a command");
}
