//! Starts a private Redis server for a test, and opens queues on it.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use relq_circular::{CircularConfig, CircularQueue, FinishBy};
use relq_conformance::server::Server;
use relq_core::{outcome::Settled, *};

pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// A duration so short that a test can wait until a lease of this length expires.
pub(crate) const BRIEF: Duration = Duration::from_millis(300);

pub(crate) const LONG: Duration = Duration::from_secs(20);

/// The higher of the two priorities.
pub(crate) fn urgent() -> Priority {
    Priority::new(Priority::NORMAL.level() + 1).unwrap()
}

pub(crate) async fn open(server: &Server, name: &str) -> CircularQueue {
    open_by(server, name, FinishBy::Mark).await
}

pub(crate) async fn open_by(
    server: &Server,
    name: &str,
    finish: FinishBy,
) -> CircularQueue {
    let config = CircularConfig::new(&server.url()).unwrap().finish(finish);
    CircularQueue::connect(config, QueueName::new(name).unwrap()).await.unwrap()
}

pub(crate) fn ask(worker: &str) -> ClaimRequest {
    ClaimRequest::new(WorkerId::new(worker).unwrap(), LEASE)
}

pub(crate) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

pub(crate) async fn push(queue: &CircularQueue, payload: &'static str) {
    queue.push_one(NewJob::new(payload)).await.unwrap();
}

/// Pushes `count` jobs. Their payloads are the numbers from 0 on.
pub(crate) async fn push_many(queue: &CircularQueue, count: u32) {
    let jobs: Vec<_> = (0..count).map(|n| NewJob::new(n.to_string())).collect();
    for page in jobs.chunks(1000) {
        queue.push(page, None).await.unwrap();
    }
}

/// Claims `count` jobs one by one. Panics if fewer are ready.
pub(crate) async fn take(queue: &CircularQueue, count: u32) -> Vec<Delivery> {
    let mut taken = Vec::new();
    while taken.len() < count as usize {
        let max = many((count - u32::try_from(taken.len()).unwrap()).min(1000));
        let next = queue.claim(&ask("w").max(max)).await.unwrap();
        assert_ne!(next, [], "{} of {count}", taken.len());
        taken.extend(next);
    }
    taken
}

pub(crate) async fn take_one(queue: &CircularQueue) -> Delivery {
    take(queue, 1).await.remove(0)
}

pub(crate) async fn finish(queue: &CircularQueue, held: Vec<Delivery>) {
    let done: Vec<_> = held
        .into_iter()
        .map(|one| Settlement::new(one.receipt, Disposition::Done))
        .collect();
    for page in done.chunks(1000) {
        let settled = queue.settle(page).await.unwrap();
        assert!(settled.iter().all(|answer| *answer == Settled::Applied));
    }
}

/// Waits until the stats satisfy the condition.
pub(crate) async fn until(queue: &CircularQueue, is_so: impl Fn(&Stats) -> bool) {
    let start = Instant::now();
    while !is_so(&queue.stats().await.unwrap()) {
        assert!(start.elapsed() < LONG, "{:?}", queue.stats().await);
    }
}

/// Leases a job to a worker that never settles it.
pub(crate) async fn abandon(queue: &CircularQueue) -> Delivery {
    let brief = ClaimRequest::new(WorkerId::new("gone").unwrap(), BRIEF);
    queue.claim_one(&brief).await.unwrap().unwrap()
}

/// Claims jobs one by one until none is left, without settling them. Returns their
/// payloads.
pub(crate) async fn served(queue: &CircularQueue) -> Vec<String> {
    let mut payloads = Vec::new();
    while let Some(one) = queue.claim_one(&ask("w")).await.unwrap() {
        payloads.push(String::from_utf8(one.payload.to_vec()).unwrap());
    }
    payloads
}

pub(crate) async fn assert_sound(queue: &CircularQueue) {
    assert_eq!(queue.audit().await.unwrap().problems, Vec::<String>::new());
}

/// The number of elements in the ring of the queue `q`.
pub(crate) fn length(server: &Server) -> u64 {
    number(&server.command(&[b"LLEN", b"q"]))
}

fn number(answer: &[u8]) -> u64 {
    String::from_utf8_lossy(answer).trim_start_matches(':').trim().parse().unwrap()
}

/// How often a command ran since the statistics were reset, including calls by scripts.
pub(crate) fn calls(server: &Server, command: &str) -> u64 {
    let answer = server.command(&[b"INFO", b"commandstats"]);
    let text = String::from_utf8(answer).unwrap();
    let prefix = format!("cmdstat_{command}:calls=");
    let count =
        text.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
    count.map_or(0, |count| count.parse().unwrap())
}

pub(crate) fn reset_calls(server: &Server) {
    server.command(&[b"CONFIG", b"RESETSTAT"]);
}

/// How many scripts clients have sent since the statistics were reset.
pub(crate) fn scripts_sent(server: &Server) -> u64 {
    calls(server, "evalsha") + calls(server, "eval")
}

pub(crate) fn keys(server: &Server) -> Vec<String> {
    let answer = server.command(&[b"KEYS", b"*"]);
    let text = String::from_utf8(answer).unwrap();
    let mut keys: Vec<_> = text.lines().skip(2).step_by(2).map(str::to_owned).collect();
    keys.sort();
    keys
}
