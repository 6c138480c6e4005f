//! What the server may do: refuse, forget, break off, die (R19, R21).

use std::time::{Duration, Instant};

use backend_stream::StreamQueue;
use conformance_tests::server::Server;
use queue_core::*;

use crate::fixture::*;

/// A job for each structure: each stream, a delay, a lease, a dead letter.
async fn fill(queue: &StreamQueue) -> Delivery {
    let dead = NewJob::new("dead").priority(urgent());
    queue.push_one(dead).await.unwrap();
    let dead = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    queue.bury(&dead.receipt, "no").await.unwrap();
    queue.push_one(NewJob::new("leased")).await.unwrap();
    let leased = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    queue.push_one(NewJob::new("listed")).await.unwrap();
    queue.push_one(NewJob::new("urgent").priority(urgent())).await.unwrap();
    queue.push_one(NewJob::new("later").delay(LEASE)).await.unwrap();
    let unique = NewJob::new("unique").unique(UniqueKey::new("k").unwrap());
    queue.push(&[unique.id(JobId::new("mine").unwrap())], None).await.unwrap();
    let token = PushToken::new("call").unwrap();
    queue.push(&[NewJob::new("by token")], Some(&token)).await.unwrap();
    leased
}

/// R19: a queue of a cluster lives in one slot.
#[tokio::test]
async fn all_keys_share_one_slot() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    fill(&queue).await;

    let keys = keys(&server);

    assert!(keys.len() >= 10, "{keys:?}");
    assert!(keys.iter().all(|key| key == "q" || key.starts_with("{q}:")), "{keys:?}");
}

/// Redis at its memory limit refuses new jobs whole, and still works off the old.
#[tokio::test]
async fn a_full_server_is_drained_and_refuses_pushes() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let leased = fill(&queue).await;
    queue.cancel(leased.job()).await.unwrap();
    server.command(&[b"CONFIG", b"SET", b"maxmemory", b"1"]);

    for job in [NewJob::new("plain"), NewJob::new("urgent").priority(urgent())] {
        let error = queue.push_one(job).await.unwrap_err();
        assert!(matches!(error, Error::Full { .. }), "{}", error.full_message());
        assert_eq!(error.happened(), Happened::No);
    }
    let taken = queue.claim(&ask("w").max(many(10))).await.unwrap();
    assert_eq!(taken.len(), 4);
    queue.retry(&taken[0].receipt, Duration::ZERO, "again").await.unwrap();
    queue.give_back(&taken[1].receipt).await.unwrap();
    queue.recover(many(100)).await.unwrap();
    for delivery in queue.claim(&ask("w").max(many(10))).await.unwrap() {
        assert_eq!(queue.ack(&delivery.receipt).await.unwrap(), Settled::Applied);
    }
    assert_eq!(queue.leave(&ask("w").worker).await.unwrap().jobs, 2);
    assert_sound(&queue).await;
}

/// A server that lost its script cache gets the scripts again, also in a turn.
#[tokio::test]
async fn flushed_scripts_are_sent_again() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.push_all(&["a".into(), "b".into(), "c".into()]).await.unwrap();
    let first = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    server.command(&[b"SCRIPT", b"FLUSH"]);

    let done = [Settlement::new(first.receipt, Verdict::Done)];
    let turn = queue.turn(&done, &ask("w")).await;

    assert_eq!(turn.settled.unwrap(), [Settled::Applied]);
    assert_eq!(&turn.claimed.unwrap()[0].payload[..], b"b");
}

/// A key of another type in the way is a clear error, and changes nothing.
#[tokio::test]
async fn a_foreign_key_in_the_way_is_an_error_and_loses_nothing() {
    for part in ["leased", "urgent", "later", "wake", "unique", "totals"] {
        let server = Server::start();
        let queue = open(&server, "q").await;
        queue.push_one(NewJob::new("x")).await.unwrap();
        let key = format!("{{q}}:{part}");
        server.command(&[b"SET", key.as_bytes(), b"foreign"]);

        let options = NewJob::new("y").priority(urgent()).delay(LEASE);
        let pushed = queue.push_one(options.unique(UniqueKey::new("k").unwrap())).await;
        let claimed = queue.claim_one(&ask("w")).await;

        let errors: Vec<_> = pushed.err().into_iter().chain(claimed.err()).collect();
        for error in &errors {
            assert!(
                matches!(error, Error::Unusable { .. }),
                "{}",
                error.full_message()
            );
        }
        assert!(!errors.is_empty() || part == "totals", "{part}");
        server.command(&[b"DEL", key.as_bytes()]);
        queue.leave(&ask("w").worker).await.unwrap();
        let found = queue.claim_one(&ask("w")).await.unwrap();
        assert_eq!(found.expect(part).payload, "x", "{part}");
        assert_sound(&queue).await;
    }
}

/// R21: a call on a broken connection fails, and the next one is well again.
#[tokio::test]
async fn a_killed_connection_heals() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.push_one(NewJob::new("a")).await.unwrap();
    server.command(&[b"CLIENT", b"KILL", b"TYPE", b"normal"]);

    let mut answer = queue.stats().await;
    let start = Instant::now();
    while answer.is_err() && start.elapsed() < LONG {
        answer = queue.stats().await;
    }

    assert_eq!(answer.unwrap().ready, 1);
}

/// R1, R21: with its file synced on each write, a killed server has lost nothing.
#[tokio::test]
async fn a_killed_server_comes_back_with_every_job() {
    let mut server =
        Server::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let queue = open(&server, "q").await;
    let leased = fill(&queue).await;
    let before = queue.stats().await.unwrap();
    server.kill();
    let down = queue.push_one(NewJob::new("x")).await.unwrap_err();
    assert!(matches!(down, Error::Unavailable { .. } | Error::Interrupted { .. }));
    server.restart();

    let start = Instant::now();
    let mut after = queue.stats().await;
    while after.is_err() && start.elapsed() < LONG {
        after = queue.stats().await;
    }

    let after = after.unwrap();
    assert_eq!((after.ready, after.leased), (before.ready, before.leased));
    assert_eq!(queue.ack(&leased.receipt).await.unwrap(), Settled::Applied);
    assert_sound(&queue).await;
}

/// Idle workers leave the server alone.
#[tokio::test]
async fn an_idle_waiting_claim_sends_at_most_two_commands_a_second() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    server.command(&[b"CONFIG", b"RESETSTAT"]);
    let wait = Duration::from_secs(4);

    queue.claim_one(&ask("w").wait(wait)).await.unwrap();

    let scripts = calls(&server, "evalsha") + calls(&server, "eval");
    // A claim reads the stream once by itself; what goes beyond that are the bells.
    let bells = calls(&server, "xreadgroup") - scripts + calls(&server, "blpop");
    assert!((1..=2 * wait.as_secs()).contains(&(scripts + bells)), "{scripts} {bells}");
}
