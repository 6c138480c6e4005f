//! Claims that wait by a blocking move into a processing list.

use std::{sync::Arc, time::Duration};

use relq_conformance::{assert_within, server::Server};
use relq_core::{outcome::Settled, *};
use tokio::time::Instant;

use crate::fixture::*;

/// R20: a job that any client pushes with the pattern's own command reaches an idle
/// worker at once. After the push, the server runs only the claim script that follows
/// the move.
#[tokio::test]
async fn a_bare_push_reaches_a_waiting_worker_in_one_hop() {
    for mode in MODES {
        let server = Server::start();
        let queue = Arc::new(open(&server, mode).await);
        let claim = waiter(&server, &queue).await;
        say(&server, &[b"CONFIG", b"RESETSTAT"]);

        say(&server, &[b"LPUSH", b"q", b"hello"]);
        let delivery = claim.await.unwrap().unwrap();

        assert_eq!((&delivery.payload[..], delivery.attempt()), (&b"hello"[..], 1));
        assert_eq!((calls(&server, "blmove"), calls(&server, "evalsha")), (0, 1));
        assert_sound(&queue).await;
        assert_eq!(queue.ack(&delivery.receipt).await.unwrap(), Settled::Applied);
    }
}

/// R22: a claim that times out cancels its blocking move, so that jobs pushed later go
/// to other claims.
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

/// R22: a job that a blocking move brings while its claim times out goes back to the
/// queue, and its attempt does not count.
#[tokio::test]
async fn a_job_moved_for_a_claim_that_gave_up_goes_back() {
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

/// R21: if the server loses its scripts while a move waits, no job is lost: the claim
/// looks again and finds the moved job.
#[tokio::test]
async fn a_move_survives_forgotten_scripts() {
    for mode in MODES {
        assert_within(Duration::from_secs(1), async || {
            let server = Server::start();
            let queue = Arc::new(open(&server, mode).await);
            let claim = waiter(&server, &queue).await;
            say(&server, &[b"SCRIPT", b"FLUSH"]);

            let start = Instant::now();
            say(&server, &[b"LPUSH", b"q", b"job"]);

            assert_eq!(claim.await.unwrap().unwrap().payload, "job");
            start.elapsed()
        })
        .await;
    }
}

/// R21: a worker that waits for jobs sends at most two commands a second.
#[tokio::test]
async fn an_idle_waiting_claim_sends_at_most_two_commands_a_second() {
    for mode in MODES {
        let server = Server::start();
        let queue = open(&server, mode).await;
        queue.claim_one(&ask("w").wait(Duration::from_millis(1))).await.unwrap();
        say(&server, &[b"CONFIG", b"RESETSTAT"]);
        let wait = Duration::from_secs(6);

        queue.claim_one(&ask("w").wait(wait)).await.unwrap();

        let sent = ["evalsha", "eval", "blmove", "blpop", "client|unblock"];
        let sent: u64 = sent.iter().map(|name| calls(&server, name)).sum();
        // One command more than the limit: the waiting connection reads the queue's
        // marker when it is opened (R25).
        let most = 2 * wait.as_secs() + 1;
        assert!((1..=most).contains(&sent), "{sent} commands");
    }
}
