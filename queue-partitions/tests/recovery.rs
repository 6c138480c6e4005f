//! Recovery and release while a part is down, or while its marker refuses the client.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    num::NonZeroU32,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicU32, Ordering},
    },
    time::Duration,
};

use relq_conformance::{
    async_trait,
    overrides::{OverriddenQueue, Override, Right},
    server::Server,
};
use relq_core::{
    ClaimRequest, Error, NewJob, Queue, QueueName, ReliableQueue as _, WorkerId,
    environment::{Clock, Environment, Timestamp},
    error::{Effect, ErrorContext, Operation},
    outcome::{Recovered, Released},
};
use relq_memory::MemoryStore;
use relq_partitions::PartitionedQueue;
use relq_zset::ZsetConfig;

const SHORT: Duration = Duration::from_millis(1);

fn page(jobs: u32) -> NonZeroU32 {
    NonZeroU32::new(jobs).unwrap()
}

fn worker() -> WorkerId {
    WorkerId::new("worker").unwrap()
}

fn in_memory(part: usize) -> Arc<dyn Queue> {
    let name = QueueName::new(format!("emails:{part}")).unwrap();
    Arc::new(MemoryStore::default().open(name, Environment::default()))
}

/// A clock that stands still. A part that failed is left out for a time, which never ends on
/// this clock.
#[derive(Debug)]
struct StoppedClock;

impl Clock for StoppedClock {
    fn now(&self) -> Timestamp {
        Timestamp::from_unix_ms(0)
    }

    fn elapsed(&self) -> Duration {
        Duration::ZERO
    }

    fn sleep(&self, _: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        Box::pin(std::future::pending())
    }
}

/// A part whose recoveries and releases fail. Counts the recoveries that were sent to it.
#[derive(Default)]
struct Down {
    asked: AtomicU32,
}

fn no_route(operation: Operation) -> Error {
    let at = ErrorContext { backend: "memory", operation };
    Error::Unavailable { at, source: "no route".into() }
}

#[async_trait]
impl Override for Down {
    async fn recover(&self, _: &Right, _: NonZeroU32) -> Result<Recovered, Error> {
        self.asked.fetch_add(1, Ordering::Relaxed);
        Err(no_route(Operation::Recover))
    }

    async fn release_worker(&self, _: &Right, _: &WorkerId) -> Result<Released, Error> {
        Err(no_route(Operation::ReleaseWorker))
    }
}

/// A queue whose part 0 is down, by a clock that stands still.
fn without_the_first_part(down: &Arc<Down>) -> PartitionedQueue {
    let right = Right { queue: in_memory(0), environment: Environment::default() };
    let first: Arc<dyn Queue> = Arc::new(OverriddenQueue::new(right, down.clone()));
    let environment = Environment::default().with_clock(Arc::new(StoppedClock));
    PartitionedQueue::new(vec![first, in_memory(1)], environment).unwrap()
}

/// Opens a queue of one part on each of these servers.
async fn on(servers: &[Server]) -> PartitionedQueue {
    let mut parts: Vec<Arc<dyn Queue>> = Vec::new();
    for (part, server) in servers.iter().enumerate() {
        let config = ZsetConfig::new(&server.url()).unwrap();
        let name = QueueName::new(format!("emails:{part}")).unwrap();
        parts.push(relq_zset::connect(config, name).await.unwrap());
    }
    PartitionedQueue::new(parts, Environment::default()).unwrap()
}

/// Pushes `jobs` jobs to the part, and claims them with leases that end at once.
async fn abandon(part: &dyn Queue, jobs: u32) {
    let pushed: Vec<_> = (0..jobs).map(|job| NewJob::new(job.to_string())).collect();
    part.push(&pushed, None).await.unwrap();
    let ask = ClaimRequest::new(worker(), SHORT).max(page(jobs));
    assert_eq!(part.claim(&ask).await.unwrap().len(), pushed.len());
    tokio::time::sleep(10 * SHORT).await;
}

/// R9: the jobs of dead workers on the other node are recovered while the node of part 0 is
/// down. When they are recovered, the call says that the node is down.
#[tokio::test(flavor = "multi_thread")]
async fn the_others_are_recovered_without_the_node_of_the_first_part() {
    let mut servers = [Server::start(), Server::start()];
    let queue = on(&servers).await;
    let other = Arc::clone(&queue.parts()[1]);
    abandon(&*other, 1).await;

    servers[0].kill();
    let recovered = queue.recover(page(100)).await.unwrap();
    let error = queue.recover(page(100)).await.unwrap_err();

    assert_eq!((recovered.requeued, recovered.more), (1, true));
    let is_outage =
        matches!(error, Error::Unavailable { .. } | Error::Interrupted { .. });
    assert!(is_outage, "{}", error.full_message());
    let stats = other.stats().await.unwrap();
    assert_eq!((stats.ready, stats.leased), (1, 0));
}

/// R25: only the marker of part 0 shows that the queue has another owner. It is compared
/// before another part is changed, also if the page is too small for a share of each part
/// and the turn begins at another part.
#[tokio::test]
async fn a_recovery_looks_at_the_first_marker_before_it_touches() {
    for size in [1, 100] {
        let servers = [Server::start(), Server::start()];
        let queue = on(&servers).await.starting_at(1);
        let other = Arc::clone(&queue.parts()[1]);
        abandon(&*other, 1).await;
        servers[0].command(&[b"SET", b"{emails:0}:marker", b"relq 4 stream"]);

        let error = queue.recover(page(size)).await.unwrap_err();

        assert!(matches!(error, Error::Unusable { .. }), "{}", error.full_message());
        let stats = other.stats().await.unwrap();
        let states = (stats.ready, stats.leased);
        assert_eq!(states, (0, 1), "R25: part 1 is not changed, pages of {size}");
    }
}

/// A part that is asked twice for one page says what is left after the second time: its
/// overdue jobs are recovered then, and the next lease ends later.
#[tokio::test]
async fn the_next_end_is_that_after_the_whole_page() {
    const HOUR: Duration = Duration::from_secs(60 * 60);
    let parts = vec![in_memory(0), in_memory(1)];
    let queue = PartitionedQueue::new(parts, Environment::default()).unwrap();
    let first = &queue.parts()[0];
    first.push(&["held".into()], None).await.unwrap();
    let held = first.claim(&ClaimRequest::new(worker(), HOUR)).await.unwrap();
    assert_eq!(held.len(), 1);
    abandon(&**first, 3).await;

    // Each part is asked for two jobs, and then part 0 for the rest of the page.
    let recovered = queue.recover(page(4)).await.unwrap();

    assert_eq!((recovered.requeued, recovered.more), (3, false));
    let next = recovered.next_in.expect("the held lease ends");
    assert!(next > HOUR / 2, "the next lease ends in an hour, not in {next:?}");
}

/// R9: the parts that are up get the whole page, and their counts are not lost.
#[tokio::test]
async fn the_others_get_the_whole_page_while_a_part_is_down() {
    let queue = without_the_first_part(&Arc::default());
    abandon(&*queue.parts()[1], 10).await;

    let recovered = queue.recover(page(10)).await.unwrap();
    let error = queue.recover(page(10)).await.unwrap_err();

    assert_eq!((recovered.requeued, recovered.more), (10, true));
    assert_eq!(error.effect(), Effect::No, "{}", error.full_message());
}

/// A part that is left out is not asked while another part is up: its node may be silent,
/// and the jobs of the others would wait for its time limit. Its outage stays visible.
#[tokio::test]
async fn a_recovery_does_not_ask_a_part_that_is_left_out() {
    let down = Arc::new(Down::default());
    let queue = without_the_first_part(&down);
    for _ in 0..4 {
        queue.recover(page(10)).await.unwrap_err();
    }
    abandon(&*queue.parts()[1], 1).await;

    let recovered = queue.recover(page(10)).await.unwrap();
    let error = queue.recover(page(10)).await.unwrap_err();

    assert_eq!(recovered.requeued, 1);
    assert_eq!(down.asked.load(Ordering::Relaxed), 4);
    assert!(error.full_message().contains("part 0 failed"), "{}", error.full_message());
}

/// A part whose first recoveries fail with an error.
struct Failing {
    error: fn(Operation) -> Error,
    times: AtomicU32,
}

#[async_trait]
impl Override for Failing {
    async fn recover(
        &self,
        right: &Right,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        let left = |times: u32| times.checked_sub(1);
        match self.times.fetch_update(Ordering::Relaxed, Ordering::Relaxed, left) {
            Ok(_) => Err((self.error)(Operation::Recover)),
            Err(_) => right.queue.recover(page).await,
        }
    }
}

/// A queue whose part 1 fails so often, and which has one overdue job in the other part or in
/// that one.
async fn with_an_overdue_job_in(part: usize, failing: Failing) -> PartitionedQueue {
    let right = Right { queue: in_memory(1), environment: Environment::default() };
    let second = Arc::new(OverriddenQueue::new(right, Arc::new(failing)));
    let parts: Vec<Arc<dyn Queue>> = vec![in_memory(0), second];
    let queue = PartitionedQueue::new(parts, Environment::default()).unwrap();
    abandon(&*queue.parts()[part], 1).await;
    queue
}

/// A job that was recovered before another part refused the call is counted by the next
/// result.
#[tokio::test]
async fn a_job_recovered_before_an_error_is_counted_later() {
    let denied = |operation| {
        let at = ErrorContext { backend: "memory", operation };
        Error::Denied { at, source: "no rights".into() }
    };
    let failing = Failing { error: denied, times: AtomicU32::new(1) };
    let queue = with_an_overdue_job_in(0, failing).await;

    let error = queue.recover(page(10)).await.unwrap_err();
    let results = [
        queue.recover(page(10)).await.unwrap(),
        queue.recover(page(10)).await.unwrap(),
    ];

    assert!(error.full_message().contains("no rights"), "{}", error.full_message());
    assert_eq!(results.map(|it| (it.requeued, it.more)), [(1, false), (0, false)]);
}

/// A wait that asks whether a part is up again may recover a job there. The next
/// recovery counts it, also one of another handle.
#[tokio::test]
async fn a_job_recovered_by_a_wait_is_counted_by_a_recovery() {
    let failing = Failing { error: no_route, times: AtomicU32::new(4) };
    let queue = with_an_overdue_job_in(1, failing).await;
    let another = queue.open_another().await.unwrap();
    for _ in 0..4 {
        queue.recover(page(10)).await.unwrap_err();
    }

    let recovered = async {
        while queue.parts()[1].stats().await.unwrap().ready == 0 {
            queue.wait_for_jobs(Duration::from_secs(1)).await.unwrap();
        }
    };
    tokio::time::timeout(Duration::from_secs(60), recovered).await.unwrap();

    assert_eq!(another.recover(page(10)).await.unwrap().requeued, 1);
}

/// R24: a worker is released in the parts that are up. The call fails, so that it is
/// repeated for the part that is down, and says that it may have happened (R21).
#[tokio::test]
async fn a_worker_is_released_in_the_others_while_a_part_is_down() {
    let queue = without_the_first_part(&Arc::default());
    let other = &queue.parts()[1];
    other.push(&["job".into()], None).await.unwrap();
    let ask = ClaimRequest::new(worker(), Duration::from_secs(30));
    assert_eq!(other.claim(&ask).await.unwrap().len(), 1);

    let error = queue.release_worker(&worker()).await.unwrap_err();

    assert_eq!(error.effect(), Effect::Maybe, "{}", error.full_message());
    assert_eq!(other.stats().await.unwrap().ready, 1);
}

/// Another handle takes its time from the same environment: by a clock that stands still, no
/// wait ends.
#[tokio::test]
async fn another_handle_has_the_clock_of_the_first() {
    const BRIEF: Duration = Duration::from_millis(20);
    let parts = vec![in_memory(0), in_memory(1)];
    let environment = Environment::default().with_clock(Arc::new(StoppedClock));
    let queue = PartitionedQueue::new(parts, environment).unwrap();
    let another = queue.open_another().await.unwrap();
    let ask = ClaimRequest::new(worker(), Duration::from_secs(30)).wait(BRIEF);

    let claimed = tokio::time::timeout(20 * BRIEF, another.claim(&ask)).await;

    assert!(claimed.is_err(), "the wait ends by another clock: {claimed:?}");
}
