//! R23: an audit of a queue in which workers move jobs as fast as they can reports the
//! damage that is in the store, and nothing else.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    num::NonZeroU16,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::Relaxed},
    },
    time::Duration,
};

use relq::{
    ClaimRequest, Disposition, JobId, NewJob, Queue, QueueName, ReliableQueueExt as _,
    WorkerId, unique::UniqueKey,
};
use relq_conformance::server::Server;
use tokio::task::JoinSet;

/// How many jobs move, and how many workers move them.
const JOBS: usize = 12;
const WORKERS: usize = 4;

const BACKENDS: [&str; 6] = [
    "zset",
    "stream",
    "circular",
    "processing-list",
    "processing-list?mode=shared",
    "keyspace",
];

async fn open(server: &Server, backend: &str) -> Arc<dyn Queue> {
    let (backend, option) = backend.split_once('?').unwrap_or((backend, ""));
    let url = format!("{backend}+{}?{option}", server.url());
    relq::connect(&url, &QueueName::new("q").unwrap()).await.unwrap()
}

/// Pushes the jobs that move. Each has an id and a unique key to check.
async fn push(queue: &dyn Queue) {
    for number in 0..JOBS {
        let mut job = NewJob::new("x")
            .id(JobId::new(format!("job-{number}")).unwrap())
            .unique(UniqueKey::new(format!("key-{number}")).unwrap());
        job.max_attempts = NonZeroU16::MAX;
        queue.push_one(job).await.unwrap();
    }
}

/// Claims jobs and puts each back, in a different way each time, until `is_over`.
async fn move_jobs(queue: Arc<dyn Queue>, number: usize, is_over: Arc<AtomicBool>) {
    let worker = WorkerId::new(format!("worker-{number}")).unwrap();
    let ask = ClaimRequest::new(worker, Duration::from_secs(60));
    let mut moves = number;
    while !is_over.load(Relaxed) {
        let Some(held) = queue.claim_one(&ask).await.unwrap() else {
            queue.recover(ask.max).await.unwrap();
            continue;
        };
        let after = Duration::from_millis(u64::from(moves.is_multiple_of(2)));
        let back = match moves % 5 {
            0 | 1 => Disposition::Retry { after, error: "again".to_owned() },
            2 | 3 => Disposition::Postpone { after },
            _ => Disposition::GiveBack,
        };
        queue.settle_one(&held.receipt, back).await.unwrap();
        moves += 1;
    }
}

/// Audits the queue so many times while workers move its jobs. Returns the problems of
/// each audit.
async fn audits(
    server: &Server,
    backend: &str,
    count: usize,
    damage: &[&[u8]],
) -> Vec<Vec<String>> {
    let queue = open(server, backend).await;
    push(&*queue).await;
    if !damage.is_empty() {
        server.command(damage);
    }
    let (is_over, mut workers) = (Arc::new(AtomicBool::new(false)), JoinSet::new());
    for number in 0..WORKERS {
        let queue = open(server, backend).await;
        workers.spawn(move_jobs(queue, number, Arc::clone(&is_over)));
    }
    let mut found = Vec::new();
    for _ in 0..count {
        found.push(queue.audit().await.unwrap().problems);
    }
    is_over.store(true, Relaxed);
    workers.join_all().await;
    found
}

/// R23: a job that moves all the time is missed by many readings of the store, and is no
/// problem.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn jobs_that_move_fast_are_no_problem() {
    for backend in BACKENDS {
        let server = Server::start();

        let found = audits(&server, backend, 60, &[]).await;

        let wrong = found.iter().filter(|problems| !problems.is_empty());
        let wrong: Vec<_> = wrong.collect();
        assert!(wrong.is_empty(), "{backend}, {} audits: {wrong:?}", wrong.len());
    }
}

/// R23: each audit names the records of a job that does not exist, and names nothing else,
/// however fast the other jobs move.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn damage_is_found_among_jobs_that_move_fast() {
    for backend in BACKENDS {
        let server = Server::start();
        let damage: [&[u8]; 4] = [b"HSET", b"{q}:errors", b"ghost", b"eno"];

        let found = audits(&server, backend, 3, &damage).await;

        for problems in found {
            assert_eq!(problems, ["error ghost belongs to no job"], "{backend}");
        }
    }
}
