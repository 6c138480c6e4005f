//! Tests how the queue recovers when a client changes the ring by hand.

use relq_conformance::server::Server;
use relq_core::{outcome::Settled, unique::UniqueKey, *};

use crate::fixture::*;

/// After a client deleted the ring, new pushes work, and a worker that still held a job
/// finds its lease lost.
#[tokio::test]
async fn a_deleted_ring_begins_anew() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 10).await;
    let mut held = take(&queue, 5).await;
    finish(&queue, vec![held.remove(0)]).await;
    server.command(&[b"DEL", b"q"]);
    assert_eq!(queue.claim_one(&ask("w")).await.unwrap(), None);

    push(&queue, "new").await;

    assert_eq!(served(&queue).await, ["new"]);
    let settled = queue.ack(&held[0].receipt).await.unwrap();
    assert_eq!(settled, Settled::LeaseLost);
    assert_sound(&queue).await;
}

/// An element that a client removed by hand leaves no mark behind once its lease has
/// expired.
#[tokio::test]
async fn a_stolen_element_is_forgotten_in_time() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for most in [1, 25] {
        let attempts = std::num::NonZeroU16::new(most).unwrap();
        queue.push_one(NewJob::new("stolen").max_attempts(attempts)).await.unwrap();
        abandon(&queue).await;
        server.command(&[b"LPOP", b"q"]);
        push(&queue, "kept").await;
        let problems = queue.audit().await.unwrap().problems;
        assert!(problems[0].contains("of no element"), "{problems:?}");
        until(&queue, |stats| stats.overdue == 1).await;

        let mut pages = 0;
        while queue.recover(many(100)).await.unwrap().more {
            pages += 1;
            assert!(pages < 10, "recovery goes round and round");
        }
        assert_eq!(served(&queue).await, ["kept"]);
        let held = queue.release_worker(&ask("w").worker).await.unwrap();
        assert_eq!(held.jobs, 1);
        let held = take(&queue, 1).await;
        finish(&queue, held).await;
        queue.claim_one(&ask("w")).await.unwrap();

        assert_sound(&queue).await;
    }
}

/// A client removed the elements of a job that has ended, of one whose worker is released
/// then, and of one whose lease expires on its last attempt. A recovery removes their marks,
/// although no worker claims.
#[tokio::test]
async fn marks_of_stolen_elements_are_forgotten_by_a_recovery() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let released = NewJob::new("released").unique(UniqueKey::new("k").unwrap());
    queue.push_one(released.expires_in(LEASE)).await.unwrap();
    push(&queue, "ended").await;
    let once = std::num::NonZeroU16::MIN;
    queue.push_one(NewJob::new("lost").max_attempts(once)).await.unwrap();
    let mut held = take(&queue, 2).await;
    finish(&queue, vec![held.remove(1)]).await;
    assert_eq!(abandon(&queue).await.payload, "lost");
    server.command(&[b"DEL", b"q"]);
    push(&queue, "kept").await;

    assert_eq!(queue.release_worker(&ask("w").worker).await.unwrap().jobs, 1);
    until(&queue, |stats| stats.overdue == 1).await;
    queue.recover(many(100)).await.unwrap();

    let marks = server.command(&[b"ZRANGE", b"{q}:marks", b"0", b"-1"]);
    assert_eq!(marks, b"*0\r\n", "the marks that are left: {}", marks.escape_ascii());
    assert_eq!(served(&queue).await, ["kept"]);
}

/// Lease marks whose element is gone do not make recovery repeat without end.
#[tokio::test]
async fn strays_are_looked_for_no_longer_than_a_turn() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 1500).await;
    take(&queue, 1500).await;
    for stray in 0..3000 {
        let stray = format!("stray-{stray}");
        server.command(&[b"ZADD", b"{q}:marks", b"-3", stray.as_bytes()]);
    }

    let mut pages = 0;
    while queue.recover(many(100)).await.unwrap().more {
        pages += 1;
        assert!(pages < 10, "recovery goes round and round");
    }

    assert_eq!(queue.stats().await.unwrap().leased, 1500);
}

/// A client copies the element of a job that is in process. The job is delivered at
/// most once more, and no other job has to wait.
#[tokio::test]
async fn a_copied_element_delays_no_other_job() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push(&queue, "x").await;
    let held = take_one(&queue).await;
    server.command(&[b"LPUSH", b"q", &held.receipt.token()[..]]);
    push(&queue, "next").await;

    assert_eq!(served(&queue).await, ["next"]);
    finish(&queue, vec![held]).await;
    queue.recover(many(100)).await.unwrap();

    assert_eq!(served(&queue).await, [""; 0]);
    let stats = queue.stats().await.unwrap();
    assert!(stats.dead <= 1, "{stats:?}");
}
