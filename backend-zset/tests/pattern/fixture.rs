//! Starts a private Redis server for a test, and opens queues on it.

use std::{num::NonZeroU32, time::Duration};

use relq_conformance::server::Server;
use relq_core::*;
use relq_zset::{ZsetConfig, ZsetQueue};

pub(crate) const LEASE: Duration = Duration::from_secs(30);
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) async fn open(server: &Server, name: &str) -> ZsetQueue {
    let config = ZsetConfig::new(&server.url()).unwrap();
    ZsetQueue::connect(config, QueueName::new(name).unwrap()).await.unwrap()
}

pub(crate) fn ask(worker: &str) -> ClaimRequest {
    ClaimRequest::new(WorkerId::new(worker).unwrap(), LEASE)
}

pub(crate) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

pub(crate) async fn assert_sound(queue: &ZsetQueue) {
    assert_eq!(queue.audit().await.unwrap().problems, Vec::<String>::new());
}

pub(crate) fn calls(server: &Server, command: &str) -> u64 {
    let answer = server.command(&[b"INFO", b"commandstats"]);
    let text = String::from_utf8(answer).unwrap();
    let prefix = format!("cmdstat_{command}:calls=");
    let count =
        text.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
    count.map_or(0, |count| count.parse().unwrap())
}

pub(crate) fn waits(server: &Server) -> bool {
    let clients = server.command(&[b"CLIENT", b"LIST"]);
    String::from_utf8_lossy(&clients).contains("cmd=blmove")
}
