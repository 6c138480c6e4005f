//! A server that is full, forgets, is killed, or holds other things.

use backend_processing_list::{Mode, ProcessingListQueue};
use conformance_tests::server::Server;
use queue_core::*;
use tokio::time::Instant;

use crate::fixture::*;

/// A job for each structure: a list, a delay, a lease, a dead letter.
async fn fill(queue: &ProcessingListQueue) -> Delivery {
    queue.push_one("dead".into()).await.unwrap();
    let dead = take(queue, &ask("w")).await;
    queue.bury(&dead.receipt, "no").await.unwrap();
    queue.push_one("leased".into()).await.unwrap();
    let leased = take(queue, &ask("w")).await;
    queue.push_one("ready".into()).await.unwrap();
    queue.push_one(NewJob::new("later").delay(LEASE)).await.unwrap();
    let unique = NewJob::new("unique").unique(UniqueKey::new("k").unwrap());
    queue.push(&[unique.id(JobId::new("mine").unwrap())], None).await.unwrap();
    let token = PushToken::new("call").unwrap();
    queue.push(&["by token".into()], Some(&token)).await.unwrap();
    leased
}

/// R19: a queue of a cluster lives in one slot.
#[tokio::test]
async fn all_keys_share_one_slot() {
    for mode in MODES {
        let server = Server::start();
        let queue = open(&server, mode).await;
        fill(&queue).await;

        let keys = keys(&server);

        assert!(keys.len() >= 10, "{keys:?}");
        assert!(
            keys.iter().all(|key| key == "q" || key.starts_with("{q}:")),
            "{keys:?}"
        );
    }
}

/// Redis at its memory limit refuses new jobs whole, and still works off the old.
#[tokio::test]
async fn a_full_server_is_drained_and_refuses_pushes() {
    for mode in MODES {
        let server = Server::start();
        let queue = open(&server, mode).await;
        let leased = fill(&queue).await;
        say(&server, &[b"CONFIG", b"SET", b"maxmemory", b"1"]);

        for job in [NewJob::new("plain"), NewJob::new("later").delay(LEASE)] {
            let error = queue.push_one(job).await.unwrap_err();
            assert!(matches!(error, Error::Full { .. }), "{}", error.full_message());
            assert_eq!(error.happened(), Happened::No);
        }
        let taken = queue.claim(&ask("w").max(many(10)).wait(LONG)).await.unwrap();
        assert_eq!(taken.len(), 3);
        queue.retry(&taken[0].receipt, LEASE, "again").await.unwrap();
        queue.give_back(&taken[1].receipt).await.unwrap();
        let named = std::slice::from_ref(&taken[2].receipt);
        queue.extend(&worker("w"), named, LEASE).await.unwrap();
        queue.recover(many(100)).await.unwrap();
        queue.cancel(leased.job()).await.unwrap();
        let rest = take(&queue, &ask("w").wait(LONG)).await;
        assert_eq!(queue.ack(&rest.receipt).await.unwrap(), Settled::Applied);
        assert_eq!(queue.leave(&worker("w")).await.unwrap().jobs, 1);
        assert_sound(&queue).await;
    }
}

/// A server that lost its script cache gets the scripts again, also in a turn.
#[tokio::test]
async fn flushed_scripts_are_sent_again() {
    for mode in MODES {
        let server = Server::start();
        let queue = open(&server, mode).await;
        queue.push(&["a".into(), "b".into(), "c".into()], None).await.unwrap();
        let first = take(&queue, &ask("w")).await;
        say(&server, &[b"SCRIPT", b"FLUSH"]);

        let done = [Settlement::new(first.receipt, Verdict::Done)];
        let turn = queue.turn(&done, &ask("w")).await;

        assert_eq!(turn.settled.unwrap(), [Settled::Applied]);
        assert_eq!(&turn.claimed.unwrap()[0].payload[..], b"b");
    }
}

/// A key of another type in the way is a clear error, and changes nothing.
#[tokio::test]
async fn a_foreign_key_in_the_way_is_an_error_and_loses_nothing() {
    let of_worker = ["workers", "retired", "handed", "later", "unique"];
    let of_shared = ["leased", "processing", "handed", "later", "unique"];
    let own = of_worker.map(|part| (Mode::PerWorker, part));
    for (mode, part) in own.into_iter().chain(of_shared.map(|it| (Mode::Shared, it))) {
        let server = Server::start();
        let queue = open(&server, mode).await;
        queue.push_one(NewJob::new("x")).await.unwrap();
        let key = format!("{{q}}:{part}");
        say(&server, &[b"SET", key.as_bytes(), b"foreign"]);

        let options = NewJob::new("y").delay(LEASE);
        let pushed = queue.push_one(options.unique(UniqueKey::new("k").unwrap())).await;
        let claimed = queue.claim_one(&ask("w")).await;

        let errors: Vec<_> = pushed.err().into_iter().chain(claimed.err()).collect();
        let is_clear = |error: &Error| matches!(error, Error::Unusable { .. });
        assert!(errors.iter().all(is_clear), "{part}: {errors:?}");
        assert!(!errors.is_empty(), "{part}");
        say(&server, &[b"DEL", key.as_bytes()]);
        queue.leave(&worker("w")).await.unwrap();
        assert_eq!(take(&queue, &ask("w")).await.payload, "x", "{part}");
        assert_sound(&queue).await;
    }
}

/// R21: a call on a broken connection fails, and the next one is well again.
#[tokio::test]
async fn a_killed_connection_heals() {
    let server = Server::start();
    let queue = open(&server, Mode::PerWorker).await;
    queue.push_one("a".into()).await.unwrap();
    say(&server, &[b"CLIENT", b"KILL", b"TYPE", b"normal"]);

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
    for mode in MODES {
        let options = ["--appendonly", "yes", "--appendfsync", "always"];
        let mut server = Server::start_with(&options);
        let queue = open(&server, mode).await;
        let leased = fill(&queue).await;
        let before = queue.stats().await.unwrap();
        server.kill();
        let down = queue.push_one("x".into()).await.unwrap_err();
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
}
