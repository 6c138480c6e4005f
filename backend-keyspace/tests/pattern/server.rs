//! What happens to the server.

use std::time::{Duration, Instant};

use backend_keyspace::{KeyspaceConfig, KeyspaceQueue};
use conformance_tests::server::Server;
use queue_core::*;

use crate::fixture::{
    LEASE, LONG, ask, assert_sound, fill, keys, many, open, queue, say,
};

/// The whole life of a job with every option.
#[tokio::test]
async fn a_job_with_every_option_ends_and_leaves_nothing_behind() {
    let server = Server::start();
    let queue = open(&server).await;
    let job = NewJob::new("x")
        .unique(UniqueKey::new("k").unwrap())
        .expires_in(LEASE)
        .header("a", "b");
    queue.push_one(job).await.unwrap();

    let first = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    queue.retry(&first.receipt, Duration::ZERO, "no luck").await.unwrap();
    let second = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    assert_eq!(second.attempt(), 2);
    assert_sound(&queue).await;
    assert_eq!(queue.ack(&second.receipt).await.unwrap(), Settled::Applied);

    assert_sound(&queue).await;
    assert_eq!(keys(&server), ["relq:database", "{q}:totals", "{q}:wake"]);
}

/// The README's ACL line is enough, and enough only for the keys that it names.
#[tokio::test]
async fn the_documented_permissions_suffice() {
    let server = Server::start();
    let readme = include_str!("../../README.md");
    let line = readme.lines().find_map(|line| line.strip_prefix("user relq ")).unwrap();
    let line = line.replace("{Q}", "{q}");
    assert_eq!(say(&server, &format!("ACL SETUSER relq {line}")), "+OK\r\n");
    let url = format!("{}?user=relq&pass=secret", server.url());
    let config = || KeyspaceConfig::new(&url).unwrap();

    let opened = KeyspaceQueue::connect(config(), queue("q")).await.unwrap();
    fill(&opened).await;
    opened.push_one(NewJob::new("wakes")).await.unwrap();
    let briefly = ask("w").wait(Duration::from_millis(1));
    while opened.claim_one(&briefly).await.unwrap().is_some() {}
    opened.recover(many(10)).await.unwrap();
    opened.leave(&ask("w").worker).await.unwrap();
    for state in [JobState::Ready, JobState::Scheduled, JobState::Dead] {
        opened.peek(&PeekRequest::new(state, many(10))).await.unwrap();
    }
    opened.cancel(&JobId::new("mine").unwrap()).await.unwrap();
    opened.redrive(&Which::All).await.unwrap();
    opened.pause().await.unwrap();
    opened.resume().await.unwrap();
    assert_sound(&opened).await;
    opened.purge().await.unwrap();

    say(&server, "DEL relq:database");
    let denied = KeyspaceQueue::connect(config(), queue("other")).await.unwrap_err();
    assert!(matches!(denied, Error::Denied { .. }), "{}", denied.full_message());
}

/// Redis at its memory limit refuses new jobs whole, and still works off the old.
#[tokio::test]
async fn a_full_server_is_drained_and_refuses_pushes() {
    let server = Server::start();
    let queue = open(&server).await;
    let leased = fill(&queue).await;
    queue.cancel(leased.job()).await.unwrap();
    say(&server, "CONFIG SET maxmemory 1");

    for job in [NewJob::new("plain"), NewJob::new("later").delay(LEASE)] {
        let error = queue.push_one(job).await.unwrap_err();
        assert!(matches!(error, Error::Full { .. }), "{}", error.full_message());
        assert_eq!(error.happened(), Happened::No);
    }
    let second = open(&server).await;
    let taken = second.claim(&ask("w").max(many(10))).await.unwrap();
    assert_eq!(taken.len(), 3);
    queue.retry(&taken[0].receipt, Duration::ZERO, "again").await.unwrap();
    queue.give_back(&taken[1].receipt).await.unwrap();
    queue.recover(many(100)).await.unwrap();
    for delivery in queue.claim(&ask("x").max(many(10))).await.unwrap() {
        assert_eq!(queue.ack(&delivery.receipt).await.unwrap(), Settled::Applied);
    }
    assert_eq!(queue.leave(&ask("w").worker).await.unwrap().jobs, 1);
    assert_sound(&queue).await;
}

/// A server that lost its script cache gets the scripts again, also in a turn.
#[tokio::test]
async fn flushed_scripts_are_sent_again() {
    let server = Server::start();
    let queue = open(&server).await;
    queue.push_all(&["a".into(), "b".into()]).await.unwrap();
    let first = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    say(&server, "SCRIPT FLUSH");

    let done = [Settlement::new(first.receipt, Verdict::Done)];
    let turn = queue.turn(&done, &ask("w")).await;

    assert_eq!(turn.settled.unwrap(), [Settled::Applied]);
    assert_eq!(turn.claimed.unwrap().len(), 1);
}

/// A key of another type in the way is a clear error, and changes nothing.
#[tokio::test]
async fn a_key_of_another_type_is_an_error_and_loses_nothing() {
    for part in ["leased", "later", "wake", "unique", "ids", "jobs"] {
        let server = Server::start();
        let queue = open(&server).await;
        queue.push_one(NewJob::new("x")).await.unwrap();
        say(&server, &format!("DEL {{q}}:{part}"));
        say(&server, &format!("SET {{q}}:{part} foreign"));

        let options = NewJob::new("y").delay(LEASE);
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
        assert!(!errors.is_empty(), "{part}");
        say(&server, &format!("DEL {{q}}:{part}"));
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
    let queue = open(&server).await;
    queue.push_one(NewJob::new("a")).await.unwrap();
    say(&server, "CLIENT KILL TYPE normal");

    assert_eq!(heals(&queue).await.ready, 1);
}

/// R1, R21: with its file synced on each write, a killed server has lost nothing.
#[tokio::test]
async fn a_killed_server_comes_back_with_every_job() {
    let mut server =
        Server::start_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let queue = open(&server).await;
    let leased = fill(&queue).await;
    let before = queue.stats().await.unwrap();
    server.kill();
    let down = queue.push_one(NewJob::new("x")).await.unwrap_err();
    assert!(matches!(down, Error::Unavailable { .. } | Error::Interrupted { .. }));
    server.restart();

    let after = heals(&queue).await;

    assert_eq!((after.ready, after.leased), (before.ready, before.leased));
    assert_eq!(queue.ack(&leased.receipt).await.unwrap(), Settled::Applied);
    assert_sound(&queue).await;
}

async fn heals(queue: &KeyspaceQueue) -> Stats {
    let start = Instant::now();
    let mut answer = queue.stats().await;
    while answer.is_err() && start.elapsed() < LONG {
        answer = queue.stats().await;
    }
    answer.unwrap()
}
