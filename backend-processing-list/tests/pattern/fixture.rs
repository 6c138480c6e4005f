//! A server of the test's own, and queues on it.

use std::{num::NonZeroU32, time::Duration};

use backend_processing_list::{Mode, ProcessingListConfig, ProcessingListQueue};
use conformance_tests::server::Server;
use queue_core::*;
use tokio::time::{Instant, sleep};

pub(crate) const MODES: [Mode; 2] = [Mode::PerWorker, Mode::Shared];

/// A lease that outlives every test.
pub(crate) const LEASE: Duration = Duration::from_secs(300);

/// A lease that a test means to lose.
pub(crate) const BRIEF: Duration = Duration::from_millis(300);

/// Longer than anything takes that is to come about.
pub(crate) const LONG: Duration = Duration::from_secs(20);

pub(crate) async fn open(server: &Server, mode: Mode) -> ProcessingListQueue {
    open_as(&server.url(), mode).await
}

pub(crate) async fn open_as(url: &str, mode: Mode) -> ProcessingListQueue {
    let config = ProcessingListConfig::new(url).unwrap().mode(mode);
    ProcessingListQueue::connect(config, QueueName::new("q").unwrap()).await.unwrap()
}

pub(crate) fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).unwrap()
}

pub(crate) fn ask(name: &str) -> ClaimRequest {
    ClaimRequest::new(worker(name), LEASE)
}

pub(crate) fn ask_briefly(name: &str) -> ClaimRequest {
    ClaimRequest::new(worker(name), BRIEF)
}

pub(crate) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

pub(crate) async fn take(queue: &ProcessingListQueue, ask: &ClaimRequest) -> Delivery {
    queue.claim_one(ask).await.unwrap().expect("a job is ready")
}

pub(crate) async fn assert_sound(queue: &ProcessingListQueue) {
    assert_eq!(queue.audit().await.unwrap().problems, Vec::<String>::new());
}

/// Recovers until so many jobs have come back.
pub(crate) async fn recover(queue: &ProcessingListQueue, wanted: u32) {
    let (give_up, mut back) = (Instant::now() + LONG, 0);
    while back < wanted {
        assert!(Instant::now() < give_up, "{back} of {wanted} came back");
        back += queue.recover(many(100)).await.unwrap().requeued;
        sleep(Duration::from_millis(5)).await;
    }
    assert_eq!(back, wanted);
}

/// Waits until the server is as it should be.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let give_up = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < give_up, "{what} did not come about");
        sleep(Duration::from_millis(2)).await;
    }
}

/// Says a plain client's command; answers the words of its answer.
pub(crate) fn say(server: &Server, words: &[&[u8]]) -> Vec<String> {
    let answer = server.command(words);
    let text = String::from_utf8_lossy(&answer).into_owned();
    assert!(!text.starts_with('-'), "{text}");
    let words = text.lines().filter(|line| !line.starts_with(['$', '*']));
    words.map(str::to_owned).collect()
}

pub(crate) fn keys(server: &Server) -> Vec<String> {
    let mut keys = say(server, &[b"KEYS", b"*"]);
    keys.sort();
    keys
}

/// The lists that workers have of their own.
pub(crate) fn own_lists(server: &Server) -> Vec<String> {
    keys(server).into_iter().filter(|key| key.starts_with("{q}:w:")).collect()
}

/// Where the one known worker has its list, whether or not there is anything in it.
pub(crate) fn list_of_the_worker(server: &Server) -> String {
    let sessions = say(server, &[b"ZRANGE", b"{q}:workers", b"0", b"-1"]);
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    format!("{{q}}:w:{}", sessions[0])
}

/// What a blocking move does at the server, at a moment of the test's choice.
pub(crate) fn move_to(server: &Server, list: &str) {
    say(server, &[b"LMOVE", b"q", list.as_bytes(), b"RIGHT", b"LEFT"]);
}

/// How often a command ran since the statistics were reset.
pub(crate) fn calls(server: &Server, command: &str) -> u64 {
    let prefix = format!("cmdstat_{command}:calls=");
    let stats = say(server, &[b"INFO", b"commandstats"]);
    let count =
        stats.iter().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
    count.map_or(0, |count| count.parse().unwrap())
}

/// Whether so many claims wait for a move.
pub(crate) fn waiting(server: &Server) -> usize {
    let clients = say(server, &[b"CLIENT", b"LIST"]);
    clients.iter().filter(|line| line.contains("cmd=blmove")).count()
}
