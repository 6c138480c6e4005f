//! Tests the two ways in which finished jobs leave the ring (R8, R23).

use relq_circular::FinishBy;
use relq_conformance::server::Server;
use relq_core::{outcome::Settled, *};

use crate::fixture::*;

/// An idle claim drops the elements of finished jobs from a ring that has no other
/// elements, and the stats never count them.
#[tokio::test]
async fn ended_elements_are_dropped_by_the_next_idle_claim() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 10).await;
    let held = take(&queue, 10).await;
    finish(&queue, held).await;
    assert_eq!(length(&server), 10);
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.unfinished(), stats.finished), (0, 10));

    assert_eq!(queue.claim_one(&ask("w")).await.unwrap(), None);

    assert_eq!(keys(&server), ["{q}:marker", "{q}:totals", "{q}:wake"]);
}

/// While jobs are in process, at most half of the ring's elements are those of ended
/// jobs.
#[tokio::test]
async fn ended_elements_never_outnumber_the_others() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 1000).await;
    take(&queue, 1000).await;

    for _ in 0..50 {
        push_many(&queue, 100).await;
        let held = take(&queue, 100).await;
        finish(&queue, held).await;
        queue.claim_one(&ask("w")).await.unwrap();
        assert!(length(&server) <= 2000, "{} elements", length(&server));
    }

    assert_eq!(queue.stats().await.unwrap().leased, 1000);
    assert_sound(&queue).await;
}

/// Recovery drops elements of ended jobs from a ring that one step can rotate, even if
/// no worker claims.
#[tokio::test]
async fn recovery_drops_ended_elements() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 10).await;
    let held = take(&queue, 5).await;
    finish(&queue, held).await;

    queue.recover(many(100)).await.unwrap();

    assert_eq!(length(&server), 5);
    assert_eq!(served(&queue).await, ["5", "6", "7", "8", "9"]);
    assert_sound(&queue).await;
}

/// Recovery drops the elements of ended jobs from a ring of any length if no job waits, in
/// several steps, even if no worker claims. It keeps the jobs in process.
#[tokio::test]
async fn recovery_drops_ended_elements_from_a_long_ring() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push_many(&queue, 2500).await;
    let mut held = take(&queue, 2500).await;
    let in_process = held.split_off(2490);
    finish(&queue, held).await;

    let mut steps = 1;
    while queue.recover(many(100)).await.unwrap().more {
        steps += 1;
        assert!(steps < 20, "recovery goes round and round");
    }

    assert_eq!(length(&server), 10, "the elements that are left after {steps} steps");
    finish(&queue, in_process).await;
    assert_sound(&queue).await;
}

/// With `LREM`, a finished job leaves nothing behind, even if equal payloads are in
/// process.
#[tokio::test]
async fn lrem_removes_the_very_element() {
    let server = Server::start();
    let queue = open_by(&server, "q", FinishBy::Lrem).await;
    for _ in 0..3 {
        server.command(&[b"LPUSH", b"q", b"same"]);
    }
    let mut held = take(&queue, 3).await;
    let late = held[1].receipt.clone();

    finish(&queue, vec![held.remove(1)]).await;

    assert_eq!(length(&server), 2);
    assert_eq!(queue.ack(&late).await.unwrap(), Settled::LeaseLost);
    finish(&queue, held).await;
    assert_eq!(keys(&server), ["{q}:marker", "{q}:totals"]);
}

/// R7: a worker that lost its lease cannot end the job, whichever way of finishing it
/// uses.
#[tokio::test]
async fn a_lost_lease_finishes_nothing_either_way() {
    for how in [FinishBy::Mark, FinishBy::Lrem] {
        let server = Server::start();
        let queue = open_by(&server, "q", how).await;
        push(&queue, "x").await;
        let stale = take_one(&queue).await;
        queue.release_worker(&ask("w").worker).await.unwrap();
        let held = take_one(&queue).await;

        let settled = queue.ack(&stale.receipt).await.unwrap();

        assert_eq!(settled, Settled::LeaseLost, "{how:?}");
        finish(&queue, vec![held]).await;
        assert_sound(&queue).await;
    }
}

/// Clients that finish jobs in different ways can use one queue at the same time.
#[tokio::test]
async fn both_ways_go_together() {
    let server = Server::start();
    let marking = open(&server, "q").await;
    let removing = open_by(&server, "q", FinishBy::Lrem).await;
    push_many(&marking, 100).await;

    for round in 0..10 {
        let held = take(&marking, 10).await;
        finish(if round % 2 == 0 { &marking } else { &removing }, held).await;
    }

    assert_eq!(removing.stats().await.unwrap().finished, 100);
    assert_eq!(removing.claim_one(&ask("w")).await.unwrap(), None);
    assert_eq!(length(&server), 0);
    assert_sound(&marking).await;
}
