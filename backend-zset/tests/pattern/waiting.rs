//! Tests how an idle claim waits (R11, R20).

use std::time::{Duration, Instant};

use relq_conformance::{assert_within, server::Server};
use relq_core::*;

use crate::fixture::*;

/// R20: a payload that any client pushes with `LPUSH` is a job.
#[tokio::test]
async fn a_bare_push_wakes_a_waiting_claim_at_once() {
    assert_within(Duration::from_secs(1), async || {
        let server = Server::start();
        let queue = open(&server, "emails").await;
        let asking = ask("w").wait(LONG);
        let claim = queue.claim_one(&asking);
        let push = async {
            while !waits(&server) {
                tokio::task::yield_now().await;
            }
            server.command(&[b"LPUSH", b"emails", b"hello"]);
            Instant::now()
        };

        let (delivery, pushed) = tokio::join!(claim, push);

        let took = pushed.elapsed();
        assert_eq!(&delivery.unwrap().unwrap().payload[..], b"hello");
        assert_sound(&queue).await;
        took
    })
    .await;
}

/// Idle workers send the server almost no commands.
#[tokio::test]
async fn an_idle_waiting_claim_sends_at_most_two_commands_a_second() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.claim_one(&ask("w")).await.unwrap();
    server.command(&[b"CONFIG", b"RESETSTAT"]);
    let wait = Duration::from_secs(4);

    queue.claim_one(&ask("w").wait(wait)).await.unwrap();

    let sent = ["evalsha", "eval", "exists", "blmove", "blpop"]
        .map(|name| calls(&server, name));
    let sent: u64 = sent.iter().sum();
    assert!((1..=2 * wait.as_secs()).contains(&sent), "{sent} commands");
}

/// R11: a claim that waits finds a job of which no notification tells, whichever key
/// has it. The job is moved there from another queue, behind relq's back.
#[tokio::test]
async fn a_waiting_claim_looks_again_at_every_source() {
    let plain = NewJob::new("x");
    let moves: [(NewJob, &[(&str, &str)]); 4] = [
        (plain.clone(), &[("other", "q")]),
        (plain.clone(), &[("other", "{q}:handed")]),
        (
            plain.clone().priority(Priority::LOWEST),
            &[JOBS, ("{other}:ranked", "{q}:ranked")],
        ),
        (
            plain.delay(Duration::from_millis(1)),
            &[JOBS, ("{other}:later", "{q}:later")],
        ),
    ];
    for (job, keys) in moves {
        let server = Server::start();
        let [queue, other] = [open(&server, "q").await, open(&server, "other").await];
        other.push_one(job).await.unwrap();
        let asking = ask("w").wait(LONG);
        let move_it = async {
            while !waits(&server) {
                tokio::task::yield_now().await;
            }
            for (from, to) in keys {
                server.command(&[b"RENAME", from.as_bytes(), to.as_bytes()]);
            }
        };

        let (claimed, ()) = tokio::join!(queue.claim_one(&asking), move_it);

        assert_eq!(claimed.unwrap().expect("it is found").payload, "x", "{keys:?}");
    }
}

const JOBS: (&str, &str) = ("{other}:jobs", "{q}:jobs");

/// R11: a wait without a claim may have any limit.
#[tokio::test]
async fn a_wait_of_any_length_is_ended_by_a_push() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let push = async {
        while !waits(&server) {
            tokio::task::yield_now().await;
        }
        queue.push_one("x".into()).await.unwrap();
    };

    let (waited, ()) = tokio::join!(queue.wait_for_jobs(Duration::MAX), push);

    waited.unwrap();
    assert_eq!(queue.claim_one(&ask("w")).await.unwrap().unwrap().payload, "x");
}
