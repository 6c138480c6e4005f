//! A worker on a queue whose parts are on three nodes.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    collections::BTreeSet,
    convert::Infallible,
    sync::{Arc, Mutex},
    time::{Duration, Instant},
};

use relq_conformance::server::Server;
use relq_core::{NewJob, Queue, QueueName, environment::Environment};
use relq_partitions::PartitionedQueue;
use relq_worker::{CancellationToken, JobContext, Worker};
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
        .lease(Duration::from_secs(2))
        .reap_every(Duration::from_millis(300))
        .stop_on(stop.clone().cancelled_owned());
    let ran = Arc::clone(&done);
    // Most jobs of the second node wait for its end, so that some are left then.
    let killed = CancellationToken::new();
    let is_killed = killed.clone();
    let running = tokio::spawn(worker.run(move |job: JobContext| {
        let (ran, is_killed) = (Arc::clone(&ran), is_killed.clone());
        async move {
            tokio::time::sleep(Duration::from_millis(20)).await;
            let payload = String::from_utf8(job.payload().to_vec()).unwrap();
            if payload.starts_with("1 ") && of_part(&ran.lock().unwrap(), 1) > 3 {
                is_killed.cancelled().await;
            }
            ran.lock().unwrap().insert(payload);
            Ok::<_, Infallible>(())
        }
    }));
    until(&done, "some jobs of the second node", |done| of_part(done, 1) > 3).await;

    servers[1].kill();
    killed.cancel();
    until(&done, "the jobs of the others", |done| {
        of_part(done, 0) == JOBS && of_part(done, 2) == JOBS
    })
    .await;
    assert!(of_part(&done.lock().unwrap(), 1) < JOBS);
    assert!(!running.is_finished());

    servers[1].restart();
    until(&done, "all jobs", |done| done.len() == 3 * JOBS).await;
    stop.cancel();
    running.await.unwrap().unwrap();
}

/// When a node is killed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Killed {
    BeforeTheWorkerStarts,
    WhileItsJobRuns,
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

async fn keeps_the_lease_of_the_other_node(killed: Killed) {
    let mut servers = [(); 2].map(|()| Server::start());
    let queue = open(&servers).await;
    for (number, part) in queue.parts().iter().enumerate() {
        part.push(&[NewJob::new(number.to_string())], None).await.unwrap();
    }
    if killed == Killed::BeforeTheWorkerStarts {
        servers[1].kill();
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
    if killed == Killed::WhileItsJobRuns {
        until(&started, "both jobs run", |started| started.len() == 2).await;
        servers[1].kill();
    }

    until(&ended, "the job of the other node", |ended| of_part(ended, 0) == 1).await;
    let runs = ended.lock().unwrap().clone();
    assert_eq!(runs.into_iter().collect::<Vec<_>>(), ["0 attempt 1"]);
    stop.cancel();
    running.await.unwrap().unwrap();
}
