//! A Redis server for one test, and queues that are opened on it.

use std::{num::NonZeroU32, ops::Deref, sync::Arc, time::Duration};

use relq_conformance::{
    proxy::{FaultProxy, Fitted, VirtualClock},
    server::Server,
};
use relq_core::*;
use relq_processing_list::{Mode, ProcessingListConfig, ProcessingListQueue};
use tokio::{
    task::JoinHandle,
    time::{Instant, sleep},
};

pub(crate) const MODES: [Mode; 2] = [Mode::PerWorker, Mode::Shared];

/// The length of a lease that does not expire during a test.
pub(crate) const LEASE: Duration = Duration::from_secs(300);

/// The length of a lease that expires during a test.
pub(crate) const BRIEF: Duration = Duration::from_millis(300);

/// A timeout that is longer than anything a test waits for.
pub(crate) const LONG: Duration = Duration::from_secs(20);

/// How many calls of recover a test makes at most until every job is found.
const PAGES: usize = 50;

/// A change of a script: its name, a text that occurs once in it, and the replacement.
pub(crate) type Patch = (&'static str, &'static str, &'static str);

/// A Redis server, and how queues reach it: directly, or through a proxy that changes
/// scripts in transit and simulates the time.
pub(crate) struct PatchedServer {
    server: Server,
    proxy: Option<(FaultProxy, VirtualClock, Vec<Fitted>)>,
}

impl PatchedServer {
    pub(crate) fn healthy() -> Self {
        Self { server: Server::start(), proxy: None }
    }

    pub(crate) fn mutated(patches: &[Patch]) -> Self {
        let (server, clock) = (Server::start(), VirtualClock::new());
        let proxy = FaultProxy::start(server.address(), clock.clone()).unwrap();
        let patches = patches.iter();
        let fitted =
            patches.map(|(script, from, to)| proxy.patch_script(script, from, to));
        let fitted = fitted.collect();
        Self { server, proxy: Some((proxy, clock, fitted)) }
    }

    pub(crate) async fn open(&self, mode: Mode) -> ProcessingListQueue {
        match &self.proxy {
            Some((proxy, ..)) => {
                open_as(proxy.actor("actor").unwrap().url(), mode).await
            }
            None => open(&self.server, mode).await,
        }
    }

    /// For each patch, whether it has changed a script yet. A script passes through the
    /// proxy when it is first called.
    pub(crate) fn fitted(&self) -> Vec<Fitted> {
        self.proxy.as_ref().map_or_else(Vec::new, |(.., fitted)| fitted.clone())
    }

    /// Lets `time` pass for the store: by the proxy's simulated clock, or really.
    pub(crate) async fn pass(&self, time: Duration) {
        match &self.proxy {
            Some((_, clock, _)) => clock.advance(time),
            None => sleep(time).await,
        }
    }
}

impl Deref for PatchedServer {
    type Target = Server;

    fn deref(&self) -> &Server {
        &self.server
    }
}

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

/// Waits until leases of length `BRIEF` have expired, and recovers `wanted` jobs.
pub(crate) async fn recover(
    patched_server: &PatchedServer,
    queue: &ProcessingListQueue,
    wanted: u32,
) {
    patched_server.pass(BRIEF).await;
    let mut back = 0;
    // Each call scans one page of keys for lists without a registered session.
    for _ in 0..PAGES {
        if back < wanted {
            back += queue.recover(many(100)).await.unwrap().requeued;
        }
    }
    assert_eq!(back, wanted, "the number of recovered jobs");
}

/// Waits until the condition is true. Panics after `LONG`; `what` is in the message.
pub(crate) async fn until(what: &str, is_so: impl Fn() -> bool) {
    let give_up = Instant::now() + LONG;
    while !is_so() {
        assert!(Instant::now() < give_up, "did not happen in time: {what}");
        sleep(Duration::from_millis(2)).await;
    }
}

/// Sends a command to the server as a client without relq does. Returns the words of
/// the reply.
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

/// The keys of all workers' own lists that exist at the server.
pub(crate) fn own_lists(server: &Server) -> Vec<String> {
    keys(server).into_iter().filter(|key| key.starts_with("{q}:w:")).collect()
}

/// The key of the only registered worker's own list. The list may be empty.
pub(crate) fn list_of_the_worker(server: &Server) -> String {
    let sessions = say(server, &[b"ZRANGE", b"{q}:workers", b"0", b"-1"]);
    assert_eq!(sessions.len(), 1, "{sessions:?}");
    format!("{{q}}:w:{}", sessions[0])
}

/// Moves a job from the queue into a processing list, as the server does for a blocking
/// move, but at a moment that the test chooses.
pub(crate) fn move_to(server: &Server, list: &str) {
    say(server, &[b"LMOVE", b"q", list.as_bytes(), b"RIGHT", b"LEFT"]);
}

/// How often the server ran a command since its statistics were reset.
pub(crate) fn calls(server: &Server, command: &str) -> u64 {
    let prefix = format!("cmdstat_{command}:calls=");
    let stats = say(server, &[b"INFO", b"commandstats"]);
    let count =
        stats.iter().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
    count.map_or(0, |count| count.parse().unwrap())
}

/// How many clients wait at the server in a blocking move.
pub(crate) fn waiting(server: &Server) -> usize {
    let clients = say(server, &[b"CLIENT", b"LIST"]);
    clients.iter().filter(|line| line.contains("cmd=blmove")).count()
}

/// Starts a claim on a task, and returns when its blocking move waits at the server.
pub(crate) async fn waiter(
    server: &Server,
    queue: &Arc<ProcessingListQueue>,
) -> JoinHandle<Option<Delivery>> {
    let (queue, asking) = (Arc::clone(queue), ask("w").wait(LONG));
    let before = waiting(server);
    let claim = tokio::spawn(async move { queue.claim_one(&asking).await.unwrap() });
    until("a move waits", || waiting(server) == before + 1).await;
    claim
}
