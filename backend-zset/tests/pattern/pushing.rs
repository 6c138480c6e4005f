//! Tests how pushes share commands (R21).

use std::{
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    thread,
    time::{Duration, Instant},
};

use relq_conformance::server::Server;
use relq_core::{outcome::Pushed, *};
use tokio::runtime::Runtime;

use crate::fixture::*;

/// Concurrent pushes share commands, and each push is stored once.
#[tokio::test]
async fn concurrent_pushes_share_commands() {
    let server = Server::start();
    let queue = Arc::new(open(&server, "q").await);
    server.command(&[b"CONFIG", b"RESETSTAT"]);

    let push = |number: u32| {
        let queue = Arc::clone(&queue);
        async move { queue.push_one(number.to_string().into()).await }
    };
    let pushes: tokio::task::JoinSet<_> = (0..64).map(push).collect();
    let pushed = pushes.join_all().await;

    assert!(pushed.iter().all(|answer| matches!(answer, Ok(Pushed::Stored(_)))));
    assert_eq!(queue.stats().await.unwrap().ready, 64);
    let sent = calls(&server, "lpush");
    assert!((1..=16).contains(&sent), "{sent} commands for 64 pushes");
}

/// A producer that keeps its thread busy does not delay the pushes of other tasks.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_busy_producer_holds_up_no_other_push() {
    let server = Server::start();
    let queue = Arc::new(open(&server, "q").await);
    let answered = Arc::new(AtomicUsize::new(0));
    for round in 1..=24 {
        let push = |number: usize| {
            let (queue, answered) = (Arc::clone(&queue), Arc::clone(&answered));
            async move {
                queue.push_one("first".into()).await.unwrap();
                if number == round % 8 {
                    return stay_busy(|| answered.load(SeqCst) == round * 7);
                }
                queue.push_one("second".into()).await.unwrap();
                answered.fetch_add(1, SeqCst);
            }
        };
        let pushes: tokio::task::JoinSet<_> = (0..8).map(push).collect();
        pushes.join_all().await;
    }
}

/// A queue still works after a runtime ended while its pushes were under way.
#[test]
fn pushes_go_on_when_their_runtime_has_ended() {
    let server = Server::start();
    let [first, second] = [(); 2].map(|()| Runtime::new().unwrap());
    let queue = Arc::new(first.block_on(open(&server, "q")));
    server.command(&[b"CLIENT", b"PAUSE", b"60000", b"WRITE"]);
    for _ in 0..3 {
        let queue = Arc::clone(&queue);
        first.spawn(async move { queue.push_one("never told".into()).await });
    }
    let start = Instant::now();
    while !is_held(&server) {
        assert!(start.elapsed() < LONG, "no push is sent");
    }
    first.shutdown_background();
    server.command(&[b"CLIENT", b"UNPAUSE"]);

    let push = async { while queue.push_one("told".into()).await.is_err() {} };
    second.block_on(async { tokio::time::timeout(LONG, push).await.unwrap() });
}

/// Whether the server holds a call that it has not answered yet.
fn is_held(server: &Server) -> bool {
    let clients = server.command(&[b"CLIENT", b"LIST"]);
    String::from_utf8_lossy(&clients).contains("flags=b")
}

/// Keeps the thread busy, so that no other task runs on it.
fn stay_busy(until: impl Fn() -> bool) {
    let start = Instant::now();
    while !until() {
        assert!(start.elapsed() < LONG, "the others wait");
        thread::sleep(Duration::from_millis(1));
    }
}
