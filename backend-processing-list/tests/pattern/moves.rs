//! Claims that wait by a move into a list.

use std::{sync::Arc, time::Duration};

use backend_processing_list::{Mode, ProcessingListQueue};
use conformance_tests::server::Server;
use queue_core::*;
use tokio::{task::JoinHandle, time::Instant};

use crate::fixture::*;

/// A claim that waits at the server.
async fn waiter(
    server: &Server,
    queue: &Arc<ProcessingListQueue>,
) -> JoinHandle<Option<Delivery>> {
    let (queue, asking) = (Arc::clone(queue), ask("w").wait(LONG));
    let before = waiting(server);
    let claim = tokio::spawn(async move { queue.claim_one(&asking).await.unwrap() });
    until("a move waits", || waiting(server) == before + 1).await;
    claim
}

/// R20: what any client pushes by the pattern's own command reaches an idle worker at
/// once, in one hop: from then on the server runs the script behind the move and nothing
/// else.
#[tokio::test]
async fn a_bare_push_reaches_a_waiting_worker_in_one_hop() {
    for mode in MODES {
        let server = Server::start();
        let queue = Arc::new(open(&server, mode).await);
        let claim = waiter(&server, &queue).await;
        say(&server, &[b"CONFIG", b"RESETSTAT"]);

        let start = Instant::now();
        say(&server, &[b"LPUSH", b"q", b"hello"]);
        let delivery = claim.await.unwrap().unwrap();

        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
        assert_eq!((&delivery.payload[..], delivery.attempt()), (&b"hello"[..], 1));
        assert_eq!((calls(&server, "blmove"), calls(&server, "evalsha")), (0, 1));
        assert_sound(&queue).await;
        assert_eq!(queue.ack(&delivery.receipt).await.unwrap(), Settled::Applied);
    }
}

/// R22: a claim that gives up calls its move off, so that what is pushed then is for
/// others.
#[tokio::test]
async fn a_claim_that_gives_up_calls_its_move_off() {
    for mode in MODES {
        let server = Server::start();
        let queue = Arc::new(open(&server, mode).await);
        let claim = waiter(&server, &queue).await;
        claim.abort();
        until("the move is called off", || waiting(&server) == 0).await;

        queue.push_one("job".into()).await.unwrap();

        assert_eq!(take(&queue, &ask("other")).await.payload, "job");
        assert_sound(&queue).await;
    }
}

/// R22: what comes in the moment in which a claim gives up goes back uncounted.
#[tokio::test]
async fn what_comes_for_a_claim_that_gave_up_goes_back() {
    for mode in MODES {
        let server = Server::start();
        let queue = Arc::new(open(&server, mode).await);
        for _ in 0..30 {
            let claim = waiter(&server, &queue).await;
            say(&server, &[b"LPUSH", b"q", b"job"]);
            claim.abort();
            let gone = claim.await.map_or(None, |delivered| delivered);
            if let Some(delivered) = gone {
                queue.ack(&delivered.receipt).await.unwrap();
                continue;
            }
            let got = queue.claim_one(&ask("other").wait(LONG)).await.unwrap().unwrap();
            assert_eq!(got.attempt(), 1);
            queue.ack(&got.receipt).await.unwrap();
        }
        assert_sound(&queue).await;
        assert_eq!(queue.stats().await.unwrap().finished, 30);
    }
}

/// R23: a pause cannot stop a move that waits already; what it brings goes back to
/// where it was, and to no worker.
#[tokio::test]
async fn what_moves_in_a_pause_goes_back_to_the_front() {
    for mode in MODES {
        let server = Server::start();
        let queue = Arc::new(open(&server, mode).await);
        let claim = waiter(&server, &queue).await;
        queue.pause().await.unwrap();

        say(&server, &[b"LPUSH", b"q", b"first", b"second"]);

        until("the move is over", || waiting(&server) == 0).await;
        let stats = queue.stats().await.unwrap();
        assert_eq!((stats.ready, stats.leased, claim.is_finished()), (2, 0, false));
        queue.resume().await.unwrap();
        assert_eq!(claim.await.unwrap().unwrap().payload, "first");
        assert_sound(&queue).await;
    }
}

/// R21: a server that forgot its scripts while a move waits has lost nothing: what was
/// moved is found by the next look.
#[tokio::test]
async fn a_move_survives_forgotten_scripts() {
    for mode in MODES {
        let server = Server::start();
        let queue = Arc::new(open(&server, mode).await);
        let claim = waiter(&server, &queue).await;
        say(&server, &[b"SCRIPT", b"FLUSH"]);

        let start = Instant::now();
        say(&server, &[b"LPUSH", b"q", b"job"]);

        assert_eq!(claim.await.unwrap().unwrap().payload, "job");
        assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    }
}

/// R10: the answer of a move is lost while its worker lives. Nobody has seen the job,
/// so that the next heartbeat puts it back, uncounted and in its place.
#[tokio::test]
async fn a_heartbeat_puts_back_what_a_move_brought_and_nobody_saw() {
    let server = Server::start();
    let queue = open(&server, Mode::PerWorker).await;
    queue
        .push(&["held".into(), "1".into(), "2".into(), "3".into()], None)
        .await
        .unwrap();
    let held = take(&queue, &ask("w")).await;
    let list = list_of_the_worker(&server);
    move_to(&server, &list);
    move_to(&server, &list);

    let heard =
        queue.extend(&worker("w"), std::slice::from_ref(&held.receipt), LEASE).await;

    assert!(matches!(heard.unwrap()[..], [Extended::Until(_)]));
    let again = queue.claim(&ask("other").max(many(10))).await.unwrap();
    let got: Vec<_> =
        again.iter().map(|one| (&one.payload[..], one.attempt())).collect();
    assert_eq!(got, [(&b"1"[..], 1), (b"2", 1), (b"3", 1)]);
    assert_eq!(queue.ack(&held.receipt).await.unwrap(), Settled::Applied);
    assert_sound(&queue).await;
}

/// R6, R10: a heartbeat that was on its way when a claim was answered does not name its
/// job. The job keeps the end that it had, and the next heartbeat takes it up: a worker
/// never steals from itself.
#[tokio::test]
async fn a_heartbeat_takes_nothing_from_a_claim_beside_it() {
    let server = Server::start();
    let queue = open(&server, Mode::PerWorker).await;
    queue.push_one("job".into()).await.unwrap();
    let held = take(&queue, &ask_briefly("w")).await;

    queue.extend(&worker("w"), &[], LEASE).await.unwrap();
    let named = std::slice::from_ref(&held.receipt);
    let heard = queue.extend(&worker("w"), named, LEASE).await.unwrap();

    assert!(matches!(heard[..], [Extended::Until(_)]));
    tokio::time::sleep(BRIEF).await;
    assert_eq!(queue.recover(many(10)).await.unwrap().requeued, 0);
    assert_eq!(queue.ack(&held.receipt).await.unwrap(), Settled::Applied);
    assert_sound(&queue).await;
}

/// R10: and when it is named by none, it comes back at that end, although the worker
/// lives on.
#[tokio::test]
async fn what_no_heartbeat_names_comes_back_at_its_end() {
    let server = Server::start();
    let queue = open(&server, Mode::PerWorker).await;
    queue.push(&["lost".into(), "held".into()], None).await.unwrap();
    take(&queue, &ask_briefly("w")).await;
    let held = take(&queue, &ask_briefly("w")).await;

    let named = std::slice::from_ref(&held.receipt);
    queue.extend(&worker("w"), named, LEASE).await.unwrap();

    recover(&queue, 1).await;
    let again = take(&queue, &ask("other")).await;
    assert_eq!((&again.payload[..], again.attempt()), (&b"lost"[..], 2));
    assert_eq!(queue.ack(&held.receipt).await.unwrap(), Settled::Applied);
    assert_sound(&queue).await;
}

/// R21: idle workers leave the server alone.
#[tokio::test]
async fn an_idle_waiting_claim_sends_at_most_two_commands_a_second() {
    for mode in MODES {
        let server = Server::start();
        let queue = open(&server, mode).await;
        say(&server, &[b"CONFIG", b"RESETSTAT"]);
        let wait = Duration::from_secs(6);

        queue.claim_one(&ask("w").wait(wait)).await.unwrap();

        let sent = ["evalsha", "eval", "blmove", "blpop", "client|unblock"];
        let sent: u64 = sent.iter().map(|name| calls(&server, name)).sum();
        assert!((1..=2 * wait.as_secs()).contains(&sent), "{sent} commands");
    }
}
