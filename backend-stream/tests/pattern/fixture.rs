//! The fixture of these tests: a Redis server for each test, and queues on it.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use relq_conformance::server::Server;
use relq_core::{
    operator::{JobState, JobView, PeekRequest, StateDetail},
    outcome::Settled,
    *,
};
use relq_stream::{StreamConfig, StreamQueue};

pub(crate) const LEASE: Duration = Duration::from_secs(30);

/// The length of a lease that is to expire during a test.
pub(crate) const BRIEF: Duration = Duration::from_millis(50);

pub(crate) const LONG: Duration = Duration::from_secs(20);

/// The highest of the three priorities.
pub(crate) fn urgent() -> Priority {
    Priority::new(Priority::NORMAL.level() + 1).unwrap()
}

/// The lowest of the three priorities.
pub(crate) fn patient() -> Priority {
    Priority::new(Priority::NORMAL.level() - 1).unwrap()
}

pub(crate) async fn open(server: &Server, name: &str) -> StreamQueue {
    let config = StreamConfig::new(&server.url()).unwrap();
    StreamQueue::connect(config, QueueName::new(name).unwrap()).await.unwrap()
}

pub(crate) fn ask(worker: &str) -> ClaimRequest {
    ClaimRequest::new(WorkerId::new(worker).unwrap(), LEASE)
}

pub(crate) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

pub(crate) async fn push(queue: &StreamQueue, payload: &'static str) {
    queue.push_one(NewJob::new(payload)).await.unwrap();
}

/// Pushes `count` jobs. Their payloads are the numbers from 0 on.
pub(crate) async fn push_many(queue: &StreamQueue, count: u32) {
    let jobs: Vec<_> = (0..count).map(|n| NewJob::new(n.to_string())).collect();
    for page in jobs.chunks(1000) {
        queue.push(page, None).await.unwrap();
    }
}

pub(crate) async fn take(queue: &StreamQueue, count: u32) -> Vec<Delivery> {
    let taken = queue.claim(&ask("w").max(many(count))).await.unwrap();
    assert_eq!(taken.len(), count as usize);
    taken
}

pub(crate) async fn take_one(queue: &StreamQueue) -> Delivery {
    take(queue, 1).await.remove(0)
}

pub(crate) async fn finish(queue: &StreamQueue, held: Vec<Delivery>) {
    let done: Vec<_> = held
        .into_iter()
        .map(|one| Settlement::new(one.receipt, Disposition::Done))
        .collect();
    let settled = queue.settle(&done).await.unwrap();
    assert!(settled.iter().all(|answer| *answer == Settled::Applied));
}

/// Leases a job to a worker that never reports again, and waits until the lease has
/// expired.
pub(crate) async fn abandon(queue: &StreamQueue) -> Delivery {
    let brief = ClaimRequest::new(WorkerId::new("gone").unwrap(), BRIEF);
    let held = queue.claim_one(&brief).await.unwrap().unwrap();
    until(queue, |stats| stats.overdue == 1).await;
    held
}

/// Waits until the stats satisfy the condition.
pub(crate) async fn until(queue: &StreamQueue, is_so: impl Fn(&Stats) -> bool) {
    let start = Instant::now();
    while !is_so(&queue.stats().await.unwrap()) {
        assert!(start.elapsed() < LONG, "{:?}", queue.stats().await);
    }
}

/// Claims jobs one by one until none is ready, and returns their payloads. Keeps the
/// leases.
pub(crate) async fn served(queue: &StreamQueue) -> Vec<String> {
    let mut payloads = Vec::new();
    while let Some(one) = queue.claim_one(&ask("w")).await.unwrap() {
        payloads.push(String::from_utf8(one.payload.to_vec()).unwrap());
    }
    payloads
}

/// Reads the dead letters. Returns the id and the reason of each.
pub(crate) async fn dead(queue: &StreamQueue) -> Vec<(String, String)> {
    let ask = PeekRequest::new(JobState::Dead, many(100));
    let words = |job: JobView| {
        let StateDetail::Dead { reason, .. } = job.detail else { panic!("it is dead") };
        (job.id.unwrap().to_string(), reason)
    };
    queue.peek(&ask).await.unwrap().jobs.into_iter().map(words).collect()
}

pub(crate) async fn problems(queue: &StreamQueue) -> Vec<String> {
    queue.audit().await.unwrap().problems
}

pub(crate) async fn assert_sound(queue: &StreamQueue) {
    assert_eq!(problems(queue).await, Vec::<String>::new());
}

/// Sends a command, whose words are separated by spaces. Returns the server's reply.
pub(crate) fn say(server: &Server, words: &str) -> String {
    let words: Vec<_> = words.split(' ').map(str::as_bytes).collect();
    let answer = String::from_utf8_lossy(&server.command(&words)).into_owned();
    assert!(!answer.starts_with('-'), "{answer}");
    answer
}

/// The ids of the entries in the stream of the queue `q`.
pub(crate) fn entries(server: &Server) -> Vec<String> {
    let answer = say(server, "XRANGE q - +");
    let is_id = |line: &&str| {
        line.contains('-') && line.starts_with(|it: char| it.is_numeric())
    };
    answer.lines().filter(is_id).map(str::to_owned).collect()
}

/// The id of the only entry in the stream of the queue `q`.
pub(crate) fn only_entry(server: &Server) -> String {
    let [id] = <[String; 1]>::try_from(entries(server)).unwrap();
    id
}

pub(crate) fn info(server: &Server, section: &str, field: &str) -> u64 {
    let text = say(server, &format!("INFO {section}"));
    let line =
        text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap().trim().parse().unwrap()
}

/// Returns how often the server ran a command since its statistics were reset. Calls by
/// scripts count too.
pub(crate) fn calls(server: &Server, command: &str) -> u64 {
    let text = say(server, "INFO commandstats");
    let prefix = format!("cmdstat_{command}:calls=");
    let count =
        text.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
    count.map_or(0, |count| count.parse().unwrap())
}

/// Returns how often the server refused to run a command since its statistics were reset.
pub(crate) fn refusals(server: &Server, command: &str) -> u64 {
    let text = say(server, "INFO commandstats");
    let prefix = format!("cmdstat_{command}:");
    let line = text.lines().find_map(|line| line.strip_prefix(&prefix));
    let mut fields = line.unwrap_or_default().split(',');
    let count = fields.find_map(|field| field.strip_prefix("rejected_calls="));
    count.map_or(0, |count| count.parse().unwrap())
}

pub(crate) fn keys(server: &Server) -> Vec<String> {
    let text = say(server, "KEYS *");
    let mut keys: Vec<_> = text.lines().skip(2).step_by(2).map(str::to_owned).collect();
    keys.sort();
    keys
}

/// Returns how many bytes of memory all keys take. The server's own totals would also
/// count the buffers of connections.
pub(crate) fn bytes_of_keys(server: &Server) -> u64 {
    let of_key = |key: &String| {
        let answer = say(server, &format!("MEMORY USAGE {key} SAMPLES 0"));
        answer.trim_start_matches(':').trim().parse::<u64>().unwrap()
    };
    keys(server).iter().map(of_key).sum()
}
