//! Tests of what the streams hold, and of how much memory they take.

use std::time::Duration;

use relq_conformance::server::Server;
use relq_core::{unique::UniqueKey, *};

use crate::fixture::*;

/// A job with every option, once finished, leaves no key behind.
#[tokio::test]
async fn a_job_with_every_option_ends_and_leaves_nothing_behind() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let job = NewJob::new("x")
        .unique(UniqueKey::new("k").unwrap())
        .expires_in(LEASE)
        .priority(urgent())
        .header("a", "b");
    queue.push_one(job).await.unwrap();

    let first = take_one(&queue).await;
    queue.retry(&first.receipt, Duration::ZERO, "no luck").await.unwrap();
    let second = take_one(&queue).await;
    assert_eq!(second.attempt(), 2);
    assert_sound(&queue).await;
    finish(&queue, vec![second]).await;
    assert_eq!(served(&queue).await, [""; 0]);

    assert_sound(&queue).await;
    assert_eq!(keys(&server), ["q", "{q}:marker", "{q}:totals", "{q}:wake"]);
    assert!(say(&server, "XLEN q").starts_with(":0"));
}

/// R1: a finished job takes no memory, and a ready or leased job is never dropped,
/// however many others come and go.
#[tokio::test]
async fn finished_jobs_take_no_room_and_waiting_ones_stay() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push(&queue, "held").await;
    let held = take_one(&queue).await;
    push(&queue, "waits").await;
    let round = async || {
        push_many(&queue, 1000).await;
        for _ in 0..2 {
            let taken = take(&queue, 501).await;
            let (waiting, done): (Vec<_>, Vec<_>) =
                taken.into_iter().partition(|one| one.payload == "waits");
            finish(&queue, done).await;
            for one in waiting {
                queue.give_back(&one.receipt).await.unwrap();
            }
        }
    };
    round().await;
    let base = bytes_of_keys(&server);
    for _ in 0..20 {
        round().await;
    }

    let grown = bytes_of_keys(&server).saturating_sub(base);

    assert!(grown < 10_000, "{grown} bytes more after 20,000 jobs");
    finish(&queue, vec![held]).await;
    assert_eq!(served(&queue).await, ["waits"]);
    assert_sound(&queue).await;
}

/// Workers that start and stop leave no consumers in the group.
#[tokio::test]
async fn workers_are_no_consumers() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for number in 0..50 {
        push(&queue, "x").await;
        let worker = ask(&format!("worker-{number}"));
        let held = queue.claim_one(&worker).await.unwrap().unwrap();
        finish(&queue, vec![held]).await;
    }

    assert!(say(&server, "XINFO CONSUMERS q relq").starts_with("*1\r\n"));
}

/// R13: returned jobs are served before new ones, and keep their order.
#[tokio::test]
async fn returned_jobs_keep_their_order() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 5).await;
    let held = take(&queue, 3).await;

    for at in [1, 2, 0] {
        queue.give_back(&held[at].receipt).await.unwrap();
    }

    assert_eq!(served(&queue).await, ["0", "1", "2", "3", "4"]);
}

/// A ready job is one entry, with 29 bytes of header before its payload.
#[tokio::test]
async fn a_waiting_job_costs_little_more_than_an_entry() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let payload = vec![b'x'; 256];
    let base = info(&server, "memory", "used_memory");
    let jobs = vec![NewJob::new(payload.clone()); 1000];
    for _ in 0..20 {
        queue.push(&jobs, None).await.unwrap();
    }
    let ours = info(&server, "memory", "used_memory") - base;

    let base = info(&server, "memory", "used_memory");
    for _ in 0..20_000 {
        server.command(&[b"XADD", b"plain", b"*", b"job", &payload]);
    }
    let plain = info(&server, "memory", "used_memory") - base;

    assert!(ours * 100 <= plain * 120, "{ours} bytes against {plain}");
}

/// A waiting claim on an empty queue sends at most two commands a second.
#[tokio::test]
async fn an_idle_waiting_claim_sends_at_most_two_commands_a_second() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.claim_one(&ask("w").wait(Duration::from_millis(1))).await.unwrap();
    server.command(&[b"CONFIG", b"RESETSTAT"]);
    let wait = Duration::from_secs(4);

    queue.claim_one(&ask("w").wait(wait)).await.unwrap();

    let scripts = calls(&server, "evalsha");
    // Each claim reads the stream once, in its script. The notifiers make all other
    // reads.
    let notifiers = calls(&server, "xreadgroup") - scripts + calls(&server, "blpop");
    assert!(
        (1..=2 * wait.as_secs()).contains(&(scripts + notifiers)),
        "{scripts} {notifiers}"
    );
    // The waiting connection runs one script when it is opened, to read the marker
    // (R25).
    assert!(calls(&server, "eval") <= 1, "{} looks", calls(&server, "eval"));
}
