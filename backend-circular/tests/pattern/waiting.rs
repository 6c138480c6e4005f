//! Tests how an idle claim waits (R9, R14, R20, R21).

use std::time::{Duration, Instant};

use relq_circular::CircularQueue;
use relq_conformance::{assert_within, server::Server};
use relq_core::*;

use crate::fixture::*;

/// How late a claim may find a push of a plain client while jobs are in process.
const LATENESS: Duration = Duration::from_secs(1);

/// Additional time for a machine that is busy with other tests.
const SLACK: Duration = Duration::from_millis(700);

/// Waits until a client is blocked at the server in `command`.
async fn until_held_in(server: &Server, command: &str) {
    let start = Instant::now();
    loop {
        let clients = server.command(&[b"CLIENT", b"LIST"]);
        if String::from_utf8_lossy(&clients).contains(&format!("cmd={command}")) {
            return;
        }
        assert!(start.elapsed() < LONG, "nobody waits in {command}");
        tokio::task::yield_now().await;
    }
}

async fn waited(queue: &CircularQueue) -> (Delivery, Duration) {
    let start = Instant::now();
    let taken = queue.claim_one(&ask("w").wait(LONG)).await.unwrap().unwrap();
    (taken, start.elapsed())
}

/// R20: a push by any client wakes a claim at once if no job is in process.
#[tokio::test]
async fn a_bare_push_into_an_empty_ring_wakes_at_once() {
    assert_within(SLACK, async || {
        let server = Server::start();
        let queue = open(&server, "q").await;
        let push = async {
            until_held_in(&server, "blmove").await;
            server.command(&[b"LPUSH", b"q", b"hello"]);
            Instant::now()
        };

        let ((taken, _), pushed) = tokio::join!(waited(&queue), push);

        let took = pushed.elapsed();
        assert_eq!(&taken.payload[..], b"hello");
        assert_sound(&queue).await;
        took
    })
    .await;
}

/// R20: while jobs are in process, a plain client's push is found within the declared
/// delay.
#[tokio::test]
async fn a_bare_push_beside_jobs_in_process_is_found_in_time() {
    assert_within(LATENESS + SLACK, async || {
        let server = Server::start();
        let queue = open(&server, "q").await;
        push(&queue, "in process").await;
        take_one(&queue).await;
        let push = async {
            until_held_in(&server, "blpop").await;
            server.command(&[b"LPUSH", b"q", b"hello"]);
            Instant::now()
        };

        let ((taken, _), pushed) = tokio::join!(waited(&queue), push);

        let took = pushed.elapsed();
        assert_eq!(&taken.payload[..], b"hello");
        assert_eq!(queue.capabilities().lateness, LATENESS);
        took
    })
    .await;
}

/// R21: relq's own push wakes a claim at once even while jobs are in process.
#[tokio::test]
async fn a_push_beside_jobs_in_process_wakes_at_once() {
    assert_within(SLACK, async || {
        let server = Server::start();
        let queue = open(&server, "q").await;
        let producer = open(&server, "q").await;
        push(&queue, "in process").await;
        take_one(&queue).await;
        let push = async {
            until_held_in(&server, "blpop").await;
            push(&producer, "hello").await;
            Instant::now()
        };

        let ((taken, _), pushed) = tokio::join!(waited(&queue), push);

        let took = pushed.elapsed();
        assert_eq!(taken.payload, "hello");
        took
    })
    .await;
}

/// R9: a claim sleeps until the earliest lease ends, and takes the job over itself,
/// without a reaper.
#[tokio::test]
async fn a_claim_sleeps_until_the_earliest_lease_ends() {
    assert_within(LATENESS, async || {
        let server = Server::start();
        let queue = open(&server, "q").await;
        push(&queue, "x").await;
        abandon(&queue).await;
        reset_calls(&server);

        let (taken, took) = waited(&queue).await;

        assert_eq!((taken.attempt(), taken.payload), (2, "x".into()));
        // One of these calls reads the marker, on the connection that waits.
        assert!(scripts_sent(&server) <= 4, "{} calls", scripts_sent(&server));
        took
    })
    .await;
}

/// R14: a claim wakes when the next delay ends, if that is before the next lease ends.
#[tokio::test]
async fn a_claim_sleeps_until_the_next_delay_ends() {
    assert_within(LATENESS, async || {
        let server = Server::start();
        let queue = open(&server, "q").await;
        push(&queue, "in process").await;
        take_one(&queue).await;
        queue.push_one(NewJob::new("later").delay(BRIEF)).await.unwrap();

        let (taken, took) = waited(&queue).await;

        assert_eq!(taken.payload, "later");
        took
    })
    .await;
}

/// R14: delayed jobs are stored beside the ring, and block no other job.
#[tokio::test]
async fn delayed_jobs_are_not_in_the_ring() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let later: Vec<_> = (0..1000).map(|_| NewJob::new("later").delay(LEASE)).collect();
    queue.push(&later, None).await.unwrap();
    push(&queue, "now").await;

    assert_eq!(length(&server), 1);

    assert_eq!(take_one(&queue).await.payload, "now");
}

/// Idle workers send the server almost no commands, even while jobs are in process.
#[tokio::test]
async fn an_idle_waiting_claim_sends_at_most_two_commands_a_second() {
    for in_process in [0, 64] {
        let server = Server::start();
        let queue = open(&server, "q").await;
        push_many(&queue, in_process).await;
        take(&queue, in_process).await;
        reset_calls(&server);
        let wait = Duration::from_secs(4);

        queue.claim(&ask("w").max(many(64)).wait(wait)).await.unwrap();

        let waiting = calls(&server, "blmove") + calls(&server, "blpop");
        let sent = scripts_sent(&server) + waiting;
        // The pushes and claims above left one wake-up behind.
        let most = 2 * wait.as_secs() + 2;
        assert!((1..=most).contains(&sent), "{sent} commands");
    }
}

/// R11: a claim that waits at an empty ring finds a scheduled job of which no
/// notification tells. The job is moved there from another queue, behind relq's back.
#[tokio::test]
async fn a_waiting_claim_looks_again_at_scheduled_jobs() {
    let server = Server::start();
    let [queue, other] = [open(&server, "q").await, open(&server, "other").await];
    let soon = NewJob::new("x").delay(Duration::from_millis(1));
    other.push_one(soon).await.unwrap();
    let move_it = async {
        until_held_in(&server, "blmove").await;
        for key in ["jobs", "later"] {
            let [from, to] = ["other", "q"].map(|queue| format!("{{{queue}}}:{key}"));
            server.command(&[b"RENAME", from.as_bytes(), to.as_bytes()]);
        }
    };

    let ((taken, _), ()) = tokio::join!(waited(&queue), move_it);

    assert_eq!(taken.payload, "x");
}

/// R21: a server that became a replica still says which keys exist. A long wait ends with
/// the error that a claim gets there, and not with the end of its time.
#[tokio::test]
async fn a_waiting_claim_notices_that_its_server_was_demoted() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let asking = ask("w").wait(LONG);
    let demote = async {
        until_held_in(&server, "blmove").await;
        server.command(&[b"REPLICAOF", b"127.0.0.1", b"1"]);
    };

    let (claimed, ()) = tokio::join!(queue.claim_one(&asking), demote);

    assert!(matches!(claimed, Err(Error::ReadOnly { .. })), "{claimed:?}");
}
