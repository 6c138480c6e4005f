//! What is special to this pattern: see the suite for what all backends share.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use backend_zset::{ZsetConfig, ZsetQueue};
use queue_core::*;
use queue_redis::testing::Server;

const LEASE: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(20);

async fn open(server: &Server, name: &str) -> ZsetQueue {
    let config = ZsetConfig::new(&server.url()).unwrap();
    ZsetQueue::connect(config, QueueName::new(name).unwrap()).await.unwrap()
}

fn ask(worker: &str) -> ClaimRequest {
    ClaimRequest::new(WorkerId::new(worker).unwrap(), LEASE)
}

fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

async fn assert_sound(queue: &ZsetQueue) {
    assert_eq!(queue.audit().await.unwrap().problems, Vec::<String>::new());
}

/// R20: what any client pushes by the pattern's own command is a job.
#[tokio::test]
async fn a_bare_push_wakes_a_waiting_claim_at_once() {
    let server = Server::start();
    let queue = open(&server, "emails").await;
    let asking = ask("w").wait(LONG);
    let start = Instant::now();
    let claim = queue.claim_one(&asking);
    let push = async {
        while !waits(&server) {
            tokio::task::yield_now().await;
        }
        server.command(&[b"LPUSH", b"emails", b"hello"]);
    };

    let (delivery, ()) = tokio::join!(claim, push);

    assert_eq!(&delivery.unwrap().unwrap().payload[..], b"hello");
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_sound(&queue).await;
}

fn waits(server: &Server) -> bool {
    let clients = server.command(&[b"CLIENT", b"LIST"]);
    String::from_utf8_lossy(&clients).contains("cmd=blmove")
}

/// The whole life of a job with every option.
#[tokio::test]
async fn a_job_with_every_option_ends_and_leaves_nothing_behind() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let job = NewJob::new("x")
        .unique(UniqueKey::new("k").unwrap())
        .expires_in(LEASE)
        .priority(Priority::HIGHEST)
        .header("a", "b");
    queue.push_one(job).await.unwrap();

    let first = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    queue.retry(&first.receipt, Duration::ZERO, "no luck").await.unwrap();
    let second = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    assert_eq!(second.attempt(), 2);
    assert_sound(&queue).await;
    assert_eq!(queue.ack(&second.receipt).await.unwrap(), Settled::Applied);

    assert_sound(&queue).await;
    let keys = server.command(&[b"KEYS", b"*"]);
    assert_eq!(keys, b"*1\r\n$10\r\n{q}:totals\r\n", "{}", keys.escape_ascii());
}

/// One element of the list is all that a plain waiting job costs.
#[tokio::test]
async fn a_thousand_jobs_are_claimed_in_order_and_finished_in_one_call() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let jobs: Vec<_> = (0..1000).map(|n: u32| NewJob::new(n.to_string())).collect();
    queue.push(&jobs, None).await.unwrap();

    let taken = queue.claim(&ask("w").max(many(1000))).await.unwrap();
    let payloads: Vec<_> = taken.iter().map(|d| d.payload.clone()).collect();
    let pushed: Vec<_> = jobs.iter().map(|job| job.payload.clone()).collect();
    assert_eq!(payloads, pushed);

    let done: Vec<_> =
        taken.into_iter().map(|d| Settlement::new(d.receipt, Verdict::Done)).collect();
    let settled = queue.settle(&done).await.unwrap();
    assert!(settled.iter().all(|answer| *answer == Settled::Applied));
    let again = queue.settle(&done).await.unwrap();
    assert!(again.iter().all(|answer| *answer == Settled::LeaseLost));
    assert_eq!(queue.stats().await.unwrap().finished, 1000);
    assert_sound(&queue).await;
}
