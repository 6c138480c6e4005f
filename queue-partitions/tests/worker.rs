//! A worker on a queue whose parts are on three nodes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use relq_conformance::{
    async_trait,
    overrides::{OverriddenQueue, Override, Right},
    server::Server,
};
use relq_core::{Error, NewJob, Queue, QueueName, Stats, environment::Environment};
use relq_memory::MemoryStore;
use relq_partitions::PartitionedQueue;
use relq_redis::{mark_if_new, pattern::PatternConfig as _};
use relq_worker::{CancellationToken, JobContext, Worker, WorkerError};
use relq_zset::ZsetConfig;

/// The number of jobs in each part.
const JOBS: usize = 100;

/// The time after which the test fails.
const LIMIT: Duration = Duration::from_secs(60);

/// The payloads of the jobs that a worker has run.
type Done = Arc<Mutex<BTreeSet<String>>>;

async fn open(servers: &[Server]) -> PartitionedQueue {
    let mut parts: Vec<Arc<dyn Queue>> = Vec::new();
    for (part, server) in servers.iter().enumerate() {
        let config = ZsetConfig::new(&server.url()).unwrap();
        let name = QueueName::new(format!("emails:{part}")).unwrap();
        parts.push(relq_zset::connect(config, name).await.unwrap());
    }
    PartitionedQueue::new(parts, Environment::default()).unwrap()
}

/// Marks part 0 before the first write, as for a queue that is opened by a URL.
fn with_marker(queue: PartitionedQueue, first: &Server) -> PartitionedQueue {
    let config = ZsetConfig::new(&first.url()).unwrap();
    let (config, owner) = config.owner(QueueName::new("emails:0").unwrap());
    queue.before_first_write(Arc::new(move || {
        let (config, owner) = (config.clone(), owner.clone());
        Box::pin(async move { mark_if_new(config, &owner).await })
    }))
}

async fn until(done: &Done, what: &str, is_so: impl Fn(&BTreeSet<String>) -> bool) {
    let began = Instant::now();
    while !is_so(&done.lock().unwrap()) {
        assert!(began.elapsed() < LIMIT, "{what}: {} jobs", done.lock().unwrap().len());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

fn of_part(done: &BTreeSet<String>, part: usize) -> usize {
    done.iter().filter(|payload| payload.starts_with(&format!("{part} "))).count()
}

/// A worker runs the jobs of two nodes while the third is down, and those of the third
/// when it is back. The worker does not end, and no job is lost.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_goes_on_while_a_node_is_down() {
    goes_on_while_a_node_is_down(Duration::from_secs(2), 3 * JOBS).await;
}

/// A settlement for the node that is down does not stop the claims from the others until
/// the lease of its job has ended.
#[tokio::test(flavor = "multi_thread")]
async fn a_settlement_for_a_node_that_is_down_stops_no_claims() {
    // Jobs that the third node leased in a lost reply come back only after the lease.
    goes_on_while_a_node_is_down(Duration::from_secs(600), 2 * JOBS).await;
}

/// `in_the_end` jobs have run at least when the node is back.
async fn goes_on_while_a_node_is_down(lease: Duration, in_the_end: usize) {
    let durable = ["--appendonly", "yes", "--appendfsync", "always"];
    let mut servers = [(); 3].map(|()| Server::start_with(&durable));
    let queue = open(&servers).await;
    for (part, own) in queue.parts().iter().enumerate() {
        let jobs = (0..JOBS).map(|job| NewJob::new(format!("{part} {job}")));
        own.push(&jobs.collect::<Vec<_>>(), None).await.unwrap();
    }
    let (done, stop) = (Done::default(), CancellationToken::new());
    let worker = Worker::new(Arc::new(queue))
        .concurrency(8.try_into().unwrap())
        .lease(lease)
        .reap_every(Duration::from_millis(300))
        .stop_on(stop.clone().cancelled_owned());
    // Most jobs of the second node wait for its end, so that some are left then, and some
    // are settled while it is down.
    let (killed, waiting) = (CancellationToken::new(), Done::default());
    let (ran, waits, is_killed) =
        (Arc::clone(&done), Arc::clone(&waiting), killed.clone());
    let running = tokio::spawn(worker.run(move |job: JobContext| {
        let (ran, waits, is_killed) =
            (Arc::clone(&ran), Arc::clone(&waits), is_killed.clone());
        async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let payload = String::from_utf8(job.payload().to_vec()).unwrap();
            if payload.starts_with("1 ") && of_part(&ran.lock().unwrap(), 1) > 3 {
                waits.lock().unwrap().insert(payload.clone());
                is_killed.cancelled().await;
            }
            ran.lock().unwrap().insert(payload);
            Ok::<_, Infallible>(())
        }
    }));
    until(&waiting, "a job of the second node waits", |jobs| !jobs.is_empty()).await;

    servers[1].kill();
    killed.cancel();
    until(&done, "the jobs of the others", |done| {
        of_part(done, 0) == JOBS && of_part(done, 2) == JOBS
    })
    .await;
    assert!(of_part(&done.lock().unwrap(), 1) < JOBS);
    assert!(!running.is_finished());

    servers[1].restart();
    until(&done, "all jobs", |done| done.len() >= in_the_end).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// When a node is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Killed {
    BeforeTheWorkerStarts,
    WhileItsJobRuns,
    /// The node of part 0, before the first heartbeat.
    TheFirstWhileItsJobRuns,
}

/// R10: a job of a node that is up keeps its lease, and ends on its first attempt, while
/// the worker also holds a job of a node that is down for longer than a lease.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_keeps_the_leases_of_the_other_nodes() {
    keeps_the_lease_of_the_other_node(Killed::WhileItsJobRuns).await;
}

/// The heartbeat opens connections of its own when the worker starts. If a node is down
/// by then, it extends the leases of the others all the same.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_that_starts_while_a_node_is_down_keeps_leases() {
    keeps_the_lease_of_the_other_node(Killed::BeforeTheWorkerStarts).await;
}

/// The node of part 0 has the marker, which the handle of the heartbeats checks before its
/// first write. The worker has checked it before, so it keeps the leases of the others.
#[tokio::test(flavor = "multi_thread")]
async fn a_worker_keeps_leases_without_the_node_of_the_marker() {
    keeps_the_lease_of_the_other_node(Killed::TheFirstWhileItsJobRuns).await;
}

async fn keeps_the_lease_of_the_other_node(killed: Killed) {
    let mut servers = [(); 2].map(|()| Server::start());
    let queue = with_marker(open(&servers).await, &servers[0]);
    let dead = usize::from(killed != Killed::TheFirstWhileItsJobRuns);
    let other = 1 - dead;
    for (number, part) in queue.parts().iter().enumerate() {
        part.push(&[NewJob::new(number.to_string())], None).await.unwrap();
    }
    if killed == Killed::BeforeTheWorkerStarts {
        servers[dead].kill();
    }
    // A machine that stands still must not end the lease between two heartbeats.
    let lease = Duration::from_secs(6);
    let (started, ended) = (Done::default(), Done::default());
    let stop = CancellationToken::new();
    let worker = Worker::new(Arc::new(queue))
        .concurrency(2.try_into().unwrap())
        .lease(lease)
        .stop_on(stop.clone().cancelled_owned());
    let (starts, ends) = (Arc::clone(&started), Arc::clone(&ended));
    let running = tokio::spawn(worker.run(move |job: JobContext| {
        let (starts, ends) = (Arc::clone(&starts), Arc::clone(&ends));
        async move {
            let part = String::from_utf8(job.payload().to_vec()).unwrap();
            let run = format!("{part} attempt {}", job.attempt());
            starts.lock().unwrap().insert(run.clone());
            tokio::select! {
                () = job.cancelled() => {}
                () = tokio::time::sleep(3 * lease / 2) => {
                    ends.lock().unwrap().insert(run);
                }
            }
            Ok::<_, Infallible>(())
        }
    }));
    if killed != Killed::BeforeTheWorkerStarts {
        until(&started, "both jobs run", |started| started.len() == 2).await;
        // The heartbeat opens its connections meanwhile. Its first call comes after 2 s.
        tokio::time::sleep(Duration::from_millis(500)).await;
        servers[dead].kill();
    }

    until(&ended, "the job of the other node", |ended| of_part(ended, other) == 1)
        .await;
    let runs = ended.lock().unwrap().clone();
    assert_eq!(runs.into_iter().collect::<Vec<_>>(), [format!("{other} attempt 1")]);
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// A part whose statistics are read late: only after a job of the part has ended.
struct ReadLate {
    is_asked: CancellationToken,
}

#[async_trait]
impl Override for ReadLate {
    async fn stats(&self, right: &Right) -> Result<Stats, Error> {
        self.is_asked.cancel();
        loop {
            let stats = right.stats().await?;
            if stats.finished > 0 {
                return Ok(stats);
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }
}

/// A pause may have reached some parts only. A worker that ends when no work is left would
/// wait for ever for a part that is paused.
#[tokio::test(flavor = "multi_thread")]
async fn until_empty_ends_when_any_part_is_paused() {
    for paused in 0..3 {
        let store = MemoryStore::default();
        let open = |part: usize| -> Arc<dyn Queue> {
            let name = QueueName::new(format!("emails:{part}")).unwrap();
            Arc::new(store.open(name, Environment::default()))
        };
        let queue =
            PartitionedQueue::new((0..3).map(open).collect(), Environment::default());
        let queue = Arc::new(queue.unwrap());
        queue.parts()[paused].push(&["job".into()], None).await.unwrap();
        queue.parts()[paused].pause().await.unwrap();
        let handler = async |_: JobContext| Ok::<_, Infallible>(());

        let running =
            Worker::new(queue.clone()).run_until_empty(queue, Duration::MAX, handler);
        let ended = tokio::time::timeout(LIMIT, running).await;

        let ended = ended.expect("the worker ends");
        assert!(matches!(ended, Err(WorkerError::Paused)), "part {paused}: {ended:?}");
    }
}

/// The statistics of the parts are not read at the same time. A job of part 1 pushes one to
/// part 0, which has been read by then, and ends before part 1 is read. The worker runs the
/// pushed job before it ends.
#[tokio::test(flavor = "multi_thread")]
async fn until_empty_sees_a_job_that_was_pushed_between_two_parts() {
    let store = MemoryStore::default();
    let open = |part: usize| -> Arc<dyn Queue> {
        let name = QueueName::new(format!("emails:{part}")).unwrap();
        Arc::new(store.open(name, Environment::default()))
    };
    let is_asked = CancellationToken::new();
    let late = Arc::new(ReadLate { is_asked: is_asked.clone() });
    let right = Right { queue: open(1), environment: Environment::default() };
    let late: Arc<dyn Queue> = Arc::new(OverriddenQueue::new(right, late));
    let queue = PartitionedQueue::new(vec![open(0), late], Environment::default());
    let queue = Arc::new(queue.unwrap());
    queue.parts()[1].push(&["first".into()], None).await.unwrap();
    let first = Arc::clone(&queue.parts()[0]);
    let handler = move |job: JobContext| {
        let (first, is_asked) = (Arc::clone(&first), is_asked.clone());
        async move {
            is_asked.cancelled().await;
            if &job.payload()[..] == b"first" {
                // The delay keeps it from a claim that is sent before the worker ends.
                let second = NewJob::new("second").delay(Duration::from_secs(1));
                first.push(&[second], None).await.unwrap();
            }
            Ok::<_, Infallible>(())
        }
    };

    let worker = Worker::new(queue.clone());
    let running = worker.run_until_empty(queue, Duration::MAX, handler);
    let ended = tokio::time::timeout(LIMIT, running).await;

    assert_eq!(ended.expect("the worker ends").unwrap().done, 2);
}
