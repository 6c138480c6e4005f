//! Tests pushes by relq and by other clients, at both ends of the ring (R2, R15, R20).

use std::time::Duration;

use relq_circular::CircularQueue;
use relq_conformance::server::Server;
use relq_core::{
    operator::{JobState, PeekRequest, Selection},
    outcome::Settled,
    unique::UniqueKey,
    *,
};

use crate::fixture::*;

/// R20: a payload that any client pushes with `LPUSH` is a job.
#[tokio::test]
async fn a_bare_push_is_a_job_with_an_id() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    server.command(&[b"LPUSH", b"q", b"123"]);

    let held = take_one(&queue).await;

    assert_eq!((&held.payload[..], held.attempt()), (&b"123"[..], 1));
    finish(&queue, vec![held]).await;
    assert_sound(&queue).await;
}

/// R15: urgent jobs are pushed at the end that claims read, so the last one is served
/// first.
#[tokio::test]
async fn urgent_jobs_are_last_in_first_out() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push(&queue, "normal").await;
    for payload in ["urgent 1", "urgent 2"] {
        queue.push_one(NewJob::new(payload).priority(urgent())).await.unwrap();
    }

    assert_eq!(served(&queue).await, ["urgent 2", "urgent 1", "normal"]);
}

/// R15: an urgent job that becomes ready again is served next, whether it was delayed, is
/// retried or is redriven.
#[tokio::test]
async fn an_urgent_job_that_becomes_ready_is_served_next() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let job = || NewJob::new("urgent").priority(urgent());
    let in_order = ["urgent", "normal"];
    push(&queue, "normal").await;
    queue.push_one(job().delay(BRIEF)).await.unwrap();
    until(&queue, |stats| stats.next_due_in == Some(Duration::ZERO)).await;
    queue.recover(many(10)).await.unwrap();
    assert_eq!(served(&queue).await, in_order, "delayed");

    queue.purge().await.unwrap();
    queue.push_one(job()).await.unwrap();
    let held = take_one(&queue).await;
    push(&queue, "normal").await;
    queue.retry(&held.receipt, Duration::ZERO, "again").await.unwrap();
    queue.recover(many(10)).await.unwrap();
    assert_eq!(served(&queue).await, in_order, "retried");

    queue.purge().await.unwrap();
    queue.push_one(job()).await.unwrap();
    let held = take_one(&queue).await;
    push(&queue, "normal").await;
    queue.bury(&held.receipt, "never").await.unwrap();
    queue.redrive(&Selection::All).await.unwrap();
    assert_eq!(served(&queue).await, in_order, "redriven");
}

/// R15: there are two priorities, and any other is refused.
#[tokio::test]
async fn other_priorities_are_refused() {
    let server = Server::start();
    let queue = open(&server, "q").await;

    for priority in [Priority::LOWEST, Priority::HIGHEST] {
        let refused = queue.push_one(NewJob::new("x").priority(priority)).await;
        assert!(matches!(refused, Err(Error::Unsupported { .. })), "{refused:?}");
    }

    assert_eq!(length(&server), 0);
}

/// Returns the payloads of the dead letters.
async fn buried(queue: &CircularQueue) -> Vec<Bytes> {
    let page = PeekRequest::new(JobState::Dead, many(10));
    let page = queue.peek(&page).await.unwrap();
    page.jobs.into_iter().map(|job| job.payload).collect()
}

/// R3, R20: a client pushes an element in the form of a job in process. No lease
/// belongs to it, so it is malformed: it is buried with all its bytes.
#[tokio::test]
async fn a_forged_element_in_process_is_buried_whole() {
    let forged: [&[u8]; 4] = [
        b"\xf5RQ\x01\x80",
        b"\xf5RQ\x01\x80\x00",
        b"\xf5RQ\x01\x80\x03w/1\xf5RQ\x01\0\x05\0\x01\0\x19\x01xpayload",
        b"\xf5RQ\x01\x80\xff",
    ];
    for element in forged {
        assert_buried_whole(element).await;
    }
}

/// R3, R20: a claim rewrites an entry without options from its first bytes. An entry that
/// only has such first bytes is malformed: it is buried with all its bytes.
#[tokio::test]
async fn a_malformed_entry_without_options_is_buried_whole() {
    let malformed: [&[u8]; 4] = [
        // No attempt is allowed.
        b"\xf5RQ\x01\0\x05\0\0\0\0\x01xpayload",
        // The id is empty.
        b"\xf5RQ\x01\0\x05\0\0\0\x19\0payload",
        // The id is longer than the rest, or the entry ends before the id's length.
        b"\xf5RQ\x01\0\x05\0\0\0\x19\xffpayload",
        b"\xf5RQ\x01\0\x05\0\0\0\x19",
    ];
    for element in malformed {
        assert_buried_whole(element).await;
    }
}

/// Pushes an element as another client does. Asserts that it becomes a dead letter with all
/// its bytes, and that the job behind it is served.
async fn assert_buried_whole(element: &[u8]) {
    let server = Server::start();
    let queue = open(&server, "q").await;
    server.command(&[b"LPUSH", b"q", element]);
    push(&queue, "behind").await;

    let behind = served(&queue).await;
    assert_eq!(behind, ["behind"], "R3: the jobs behind {}", element.escape_ascii());

    assert_eq!(buried(&queue).await, [element], "R3: the bytes of the dead letter");
    assert_sound(&queue).await;
}

/// R2: a payload that looks like an element in process is an ordinary payload if relq
/// pushed it.
#[tokio::test]
async fn a_payload_may_look_like_an_element_in_process() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    push(&queue, "x").await;
    let element = take_one(&queue).await.receipt.token().clone();
    queue.push_one(NewJob::new(element.clone())).await.unwrap();

    let held = take_one(&queue).await;

    assert_eq!(held.payload, element);
    finish(&queue, vec![held]).await;
    assert_eq!(queue.stats().await.unwrap().leased, 1);
}

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
    assert_eq!(queue.ack(&second.receipt).await.unwrap(), Settled::Applied);
    queue.recover(many(10)).await.unwrap();

    assert_sound(&queue).await;
    assert_eq!(keys(&server), ["{q}:marker", "{q}:totals", "{q}:wake"]);
}

/// The memory that the server uses, in bytes.
fn memory(server: &Server) -> u64 {
    let answer = server.command(&[b"INFO", b"memory"]);
    let text = String::from_utf8(answer).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("used_memory:"));
    line.unwrap().trim().parse().unwrap()
}

/// A waiting job is one element, with a short header before its payload.
#[tokio::test]
async fn a_waiting_job_costs_little_more_than_a_list_element() {
    const PUSHES: usize = 20;
    let server = Server::start();
    let queue = open(&server, "q").await;
    let payload = vec![b'x'; 256];
    let base = memory(&server);
    for _ in 0..PUSHES {
        queue.push(&vec![NewJob::new(payload.clone()); 1000], None).await.unwrap();
    }
    let ours = memory(&server) - base;

    let base = memory(&server);
    for _ in 0..PUSHES {
        let words = [&b"LPUSH"[..], b"plain"].into_iter();
        let plain: Vec<_> =
            words.chain(std::iter::repeat_n(&payload[..], 1000)).collect();
        server.command(&plain);
    }
    let plain = memory(&server) - base;

    assert!(ours * 100 <= plain * 115, "{ours} bytes against {plain}");
}
