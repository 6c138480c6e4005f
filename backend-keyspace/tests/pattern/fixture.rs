//! A private server, and the commands that the tests send to it.

use std::{num::NonZeroU32, time::Duration};

use relq_conformance::server::Server;
use relq_core::{unique::UniqueKey, *};
use relq_keyspace::{KeyspaceConfig, KeyspaceQueue};

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// Opens the queue `q` in the first database of the server.
pub(crate) async fn open(server: &Server) -> KeyspaceQueue {
    try_open(server, "q").await.unwrap()
}

pub(crate) async fn try_open(
    server: &Server,
    name: &str,
) -> Result<KeyspaceQueue, Error> {
    KeyspaceQueue::connect(config(server), queue(name)).await
}

pub(crate) async fn open_among_foreign_keys(server: &Server) -> KeyspaceQueue {
    let config = config(server).tolerate_foreign_keys();
    KeyspaceQueue::connect(config, queue("q")).await.unwrap()
}

pub(crate) fn config(server: &Server) -> KeyspaceConfig {
    KeyspaceConfig::new(&server.url()).unwrap()
}

pub(crate) fn queue(name: &str) -> QueueName {
    QueueName::new(name).unwrap()
}

pub(crate) fn ask(worker: &str) -> ClaimRequest {
    ClaimRequest::new(WorkerId::new(worker).unwrap(), LEASE)
}

pub(crate) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

pub(crate) async fn assert_sound(queue: &KeyspaceQueue) {
    assert_eq!(queue.audit().await.unwrap().problems, Vec::<String>::new());
}

/// Stores one job in each structure: ready, scheduled, leased, dead, and one with side
/// records. Returns the delivery of the leased one.
pub(crate) async fn fill(queue: &KeyspaceQueue) -> Delivery {
    queue.push_one(NewJob::new("dead")).await.unwrap();
    let dead = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    queue.bury(&dead.receipt, "no").await.unwrap();
    queue.push_one(NewJob::new("leased")).await.unwrap();
    let leased = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    queue.push_one(NewJob::new("item")).await.unwrap();
    queue.push_one(NewJob::new("later").delay(LEASE)).await.unwrap();
    let unique = NewJob::new("unique").unique(UniqueKey::new("k").unwrap());
    queue.push(&[unique.id(JobId::new("mine").unwrap())], None).await.unwrap();
    let token = PushToken::new("call").unwrap();
    queue.push(&[NewJob::new("by token")], Some(&token)).await.unwrap();
    leased
}

/// Sends a command, written as text, to the server, as any client would.
pub(crate) fn say(server: &Server, command: &str) -> String {
    let words: Vec<_> = command.split(' ').map(str::as_bytes).collect();
    String::from_utf8(server.command(&words)).unwrap()
}

pub(crate) fn keys(server: &Server) -> Vec<String> {
    let text = say(server, "KEYS *");
    let mut keys: Vec<_> = text.lines().skip(2).step_by(2).map(str::to_owned).collect();
    keys.sort();
    keys
}

/// Adds `count` jobs that another worker has leased. First writes to the queue, because
/// it refuses keys without a marker (R25).
pub(crate) async fn lease_many(server: &Server, queue: &KeyspaceQueue, count: usize) {
    queue.resume().await.unwrap();
    let script = "for i = 1, ARGV[1] do \
                  local key = 'processing_' .. i .. '_n-' .. i .. '/1/other' \
                  redis.call('SET', key, '\\245RQ\\1\\0\\5\\0\\1\\0\\25\\1x') \
                  redis.call('ZADD', '{q}:leased', 9e12, key) end return 'OK'";
    let count = count.to_string();
    let words = ["EVAL", script, "0", &count].map(str::as_bytes);
    assert_eq!(server.command(&words), b"$2\r\nOK\r\n");
}

/// How often clients sent `command` to the server since `CONFIG RESETSTAT`.
pub(crate) fn calls(server: &Server, command: &str) -> u64 {
    let text = say(server, "INFO commandstats");
    let prefix = format!("cmdstat_{command}:calls=");
    let count =
        text.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
    count.map_or(0, |count| count.parse().unwrap())
}

/// How many scripts and blocking commands clients sent since `CONFIG RESETSTAT`.
pub(crate) fn sent(server: &Server) -> u64 {
    ["evalsha", "eval", "blpop", "scan"].map(|name| calls(server, name)).iter().sum()
}
