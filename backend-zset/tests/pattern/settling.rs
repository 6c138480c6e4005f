//! Tests how jobs are claimed and settled, and what is left of them (R13, R21, R33).

use std::{num::NonZeroU16, time::Duration};

use relq_conformance::server::Server;
use relq_core::{outcome::Settled, unique::UniqueKey, *};

use crate::fixture::*;

/// A job that uses every option leaves no key behind after it has ended.
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
    assert_eq!(keys(&server), ["{q}:marker", "{q}:totals", "{q}:wake"]);
}

/// R7, R11: its holder can settle a job at each attempt, also when the number of attempts takes
/// two bytes.
#[tokio::test]
async fn a_job_is_settled_at_each_of_hundreds_of_attempts() {
    const ATTEMPTS: u16 = 600;
    let server = Server::start();
    let queue = open(&server, "q").await;
    let most = NonZeroU16::new(ATTEMPTS).unwrap();
    queue.push_one(NewJob::new("x").max_attempts(most)).await.unwrap();

    for attempt in 1..=u32::from(ATTEMPTS) {
        let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
        assert_eq!(held.attempt(), attempt);
        let settled = queue.retry(&held.receipt, Duration::ZERO, "again").await;
        assert_eq!(settled.unwrap(), Settled::Applied, "at the attempt {attempt}");
    }

    assert_eq!(queue.stats().await.unwrap().dead, 1);
    assert_sound(&queue).await;
}

fn keys(server: &Server) -> Vec<String> {
    let answer = server.command(&[b"KEYS", b"*"]);
    let text = String::from_utf8(answer).unwrap();
    let mut keys: Vec<_> = text.lines().skip(2).step_by(2).map(str::to_owned).collect();
    keys.sort();
    keys
}

/// A plain waiting job is stored as one list element and nothing else.
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

    let done: Vec<_> = taken
        .into_iter()
        .map(|d| Settlement::new(d.receipt, Disposition::Done))
        .collect();
    let settled = queue.settle(&done).await.unwrap();
    assert!(settled.iter().all(|answer| *answer == Settled::Applied));
    let again = queue.settle(&done).await.unwrap();
    assert!(again.iter().all(|answer| *answer == Settled::LeaseLost));
    assert_eq!(queue.stats().await.unwrap().finished, 1000);
    assert_sound(&queue).await;
}

/// R33: the record of a worker that was released is removed, and not only left out of the
/// list, from which no later step would find it.
#[tokio::test]
async fn a_released_worker_leaves_no_record() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let worker = WorkerId::new("w").unwrap();
    let records = || server.command(&[b"EXISTS", b"{q}:alive", b"{q}:runs"]);
    let report = operator::WorkerReport::new(worker.clone(), many(1));
    queue.report_worker(&report).await.unwrap();
    assert_eq!(records(), b":2\r\n");

    queue.release_worker(&worker).await.unwrap();

    assert_eq!(records(), b":0\r\n");
}

/// R13, R21: the first call of a new connection settles before it claims, also on a
/// server that has only the script of the claim. A job that is given back is at the
/// front again.
#[tokio::test]
async fn a_server_without_scripts_settles_before_it_claims() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for job in ["a", "b"] {
        queue.push_one(job.into()).await.unwrap();
    }
    let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    server.command(&[b"SCRIPT", b"FLUSH"]);
    assert!(open(&server, "empty").await.claim_one(&ask("w")).await.unwrap().is_none());
    let another = open(&server, "q").await;

    let back = [Settlement::new(held.receipt, Disposition::GiveBack)];
    let both = another.settle_and_claim(&back, &ask("w")).await;

    assert_eq!(both.settled.unwrap(), [Settled::Applied]);
    assert_eq!(both.claimed.unwrap()[0].payload, "a");
}

/// Jobs that are done and have no side records end in the script that claims.
#[tokio::test]
async fn a_worker_settles_and_claims_by_one_script() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for job in ["a", "b"] {
        queue.push_one(job.into()).await.unwrap();
    }
    let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    server.command(&[b"CONFIG", b"RESETSTAT"]);

    let done = [Settlement::new(held.receipt, Disposition::Done)];
    let both = queue.settle_and_claim(&done, &ask("w")).await;

    assert_eq!(both.settled.unwrap(), [Settled::Applied]);
    assert_eq!(both.claimed.unwrap()[0].payload, "b");
    assert_eq!(calls(&server, "evalsha") + calls(&server, "eval"), 1);
    assert_sound(&queue).await;
}

/// R21: a key of another type that only the claim reads does not keep jobs from being
/// settled. A key that the settlement changes makes both fail, and nothing is changed.
#[tokio::test]
async fn a_claim_that_is_refused_keeps_no_job_from_being_settled() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for job in ["a", "b"] {
        queue.push_one(job.into()).await.unwrap();
    }
    let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    let done = [Settlement::new(held.receipt, Disposition::Done)];

    server.command(&[b"RENAME", b"{q}:leased", b"aside"]);
    server.command(&[b"SET", b"{q}:leased", b"text"]);
    let neither = queue.settle_and_claim(&done, &ask("w")).await;
    server.command(&[b"RENAME", b"aside", b"{q}:leased"]);
    server.command(&[b"SET", b"{q}:later", b"text"]);
    let only_settled = queue.settle_and_claim(&done, &ask("w")).await;
    server.command(&[b"DEL", b"{q}:later"]);

    assert!(matches!(neither.settled, Err(Error::Unusable { .. })));
    assert!(matches!(neither.claimed, Err(Error::Unusable { .. })));
    assert_eq!(only_settled.settled.unwrap(), [Settled::Applied]);
    assert!(matches!(only_settled.claimed, Err(Error::Unusable { .. })));
    assert_eq!(queue.claim_one(&ask("w")).await.unwrap().unwrap().payload, "b");
    assert_sound(&queue).await;
}

/// R13: jobs that are recovered together keep the order of their claims, whichever lease
/// ended first.
#[tokio::test]
async fn recovered_jobs_keep_their_order_whatever_their_leases() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let short = Duration::from_millis(20);
    queue.push_one(NewJob::new("first").lease(2 * short)).await.unwrap();
    for payload in ["second", "third"] {
        queue.push_one(NewJob::new(payload)).await.unwrap();
    }
    let ask_short = ClaimRequest::new(WorkerId::new("w-1.2:3_4").unwrap(), short);
    let claimed = queue.claim(&ask_short.max(many(2))).await.unwrap();
    assert_eq!(claimed.len(), 2);
    let start = std::time::Instant::now();
    while queue.stats().await.unwrap().overdue < 2 {
        assert!(start.elapsed() < LONG, "the leases do not end");
    }

    let recovered = queue.recover(many(100)).await.unwrap();

    assert_eq!((recovered.requeued, recovered.more), (2, false));
    let again = queue.claim(&ask("w").max(many(3))).await.unwrap();
    let payloads: Vec<_> = again.iter().map(|job| job.payload.clone()).collect();
    assert_eq!(payloads, ["first", "second", "third"]);
}
