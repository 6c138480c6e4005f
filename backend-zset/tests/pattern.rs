//! What is special to this pattern: see the suite for what all backends share.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use backend_zset::{ZsetConfig, ZsetQueue};
use conformance_tests::server::Server;
use queue_core::*;

const LEASE: Duration = Duration::from_secs(30);
const LONG: Duration = Duration::from_secs(20);

async fn open(server: &Server, name: &str) -> ZsetQueue {
    let config = ZsetConfig::new(&server.url()).unwrap();
    ZsetQueue::connect(config, QueueName::new(name).unwrap()).await.unwrap()
}

fn ask(worker: &str) -> ClaimRequest {
    ClaimRequest::new(WorkerId::new(worker).unwrap(), LEASE)
}

fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).unwrap()
}

async fn assert_sound(queue: &ZsetQueue) {
    assert_eq!(queue.audit().await.unwrap().problems, Vec::<String>::new());
}

/// R20: what any client pushes by the pattern's own command is a job.
#[tokio::test]
async fn a_bare_push_wakes_a_waiting_claim_at_once() {
    let server = Server::start();
    let queue = open(&server, "emails").await;
    let asking = ask("w").wait(LONG);
    let start = Instant::now();
    let claim = queue.claim_one(&asking);
    let push = async {
        while !waits(&server) {
            tokio::task::yield_now().await;
        }
        server.command(&[b"LPUSH", b"emails", b"hello"]);
    };

    let (delivery, ()) = tokio::join!(claim, push);

    assert_eq!(&delivery.unwrap().unwrap().payload[..], b"hello");
    assert!(start.elapsed() < Duration::from_secs(1), "{:?}", start.elapsed());
    assert_sound(&queue).await;
}

fn waits(server: &Server) -> bool {
    let clients = server.command(&[b"CLIENT", b"LIST"]);
    String::from_utf8_lossy(&clients).contains("cmd=blmove")
}

/// The whole life of a job with every option.
#[tokio::test]
async fn a_job_with_every_option_ends_and_leaves_nothing_behind() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let job = NewJob::new("x")
        .unique(UniqueKey::new("k").unwrap())
        .expires_in(LEASE)
        .priority(Priority::HIGHEST)
        .header("a", "b");
    queue.push_one(job).await.unwrap();

    let first = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    queue.retry(&first.receipt, Duration::ZERO, "no luck").await.unwrap();
    let second = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    assert_eq!(second.attempt(), 2);
    assert_sound(&queue).await;
    assert_eq!(queue.ack(&second.receipt).await.unwrap(), Settled::Applied);

    assert_sound(&queue).await;
    assert_eq!(keys(&server), ["{q}:totals", "{q}:wake"]);
}

/// One element of the list is all that a plain waiting job costs.
#[tokio::test]
async fn a_thousand_jobs_are_claimed_in_order_and_finished_in_one_call() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let jobs: Vec<_> = (0..1000).map(|n: u32| NewJob::new(n.to_string())).collect();
    queue.push(&jobs, None).await.unwrap();

    let taken = queue.claim(&ask("w").max(many(1000))).await.unwrap();
    let payloads: Vec<_> = taken.iter().map(|d| d.payload.clone()).collect();
    let pushed: Vec<_> = jobs.iter().map(|job| job.payload.clone()).collect();
    assert_eq!(payloads, pushed);

    let done: Vec<_> =
        taken.into_iter().map(|d| Settlement::new(d.receipt, Verdict::Done)).collect();
    let settled = queue.settle(&done).await.unwrap();
    assert!(settled.iter().all(|answer| *answer == Settled::Applied));
    let again = queue.settle(&done).await.unwrap();
    assert!(again.iter().all(|answer| *answer == Settled::LeaseLost));
    assert_eq!(queue.stats().await.unwrap().finished, 1000);
    assert_sound(&queue).await;
}

fn keys(server: &Server) -> Vec<String> {
    let answer = server.command(&[b"KEYS", b"*"]);
    let text = String::from_utf8(answer).unwrap();
    let mut keys: Vec<_> = text.lines().skip(2).step_by(2).map(str::to_owned).collect();
    keys.sort();
    keys
}

fn info(server: &Server, section: &str, field: &str) -> u64 {
    let answer = server.command(&[b"INFO", section.as_bytes()]);
    let text = String::from_utf8(answer).unwrap();
    let line =
        text.lines().find_map(|line| line.strip_prefix(field)?.strip_prefix(':'));
    line.unwrap().trim().parse().unwrap()
}

/// A job for each structure: a list, a rank, a delay, a lease, a dead letter.
async fn fill(queue: &ZsetQueue) -> Delivery {
    let urgent = NewJob::new("dead").priority(Priority::HIGHEST);
    queue.push_one(urgent).await.unwrap();
    let dead = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    queue.bury(&dead.receipt, "no").await.unwrap();
    queue.push_one(NewJob::new("leased")).await.unwrap();
    let leased = queue.claim_one(&ask("w")).await.unwrap().unwrap();
    queue.push_one(NewJob::new("listed")).await.unwrap();
    queue.push_one(NewJob::new("ranked").priority(Priority::LOWEST)).await.unwrap();
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

/// The README's ACL line is enough, and enough only for the queue that it names.
#[tokio::test]
async fn the_documented_permissions_suffice() {
    let server = Server::start();
    let readme = include_str!("../README.md");
    let line = readme.lines().find_map(|line| line.strip_prefix("user relq ")).unwrap();
    let line = line.replace("~Q ~{Q}:*", "~q ~{q}:*");
    let words = ["ACL", "SETUSER", "relq"].into_iter().chain(line.split(' '));
    let words: Vec<_> = words.map(str::as_bytes).collect();
    assert_eq!(server.command(&words), b"+OK\r\n");
    let url = format!("{}?user=relq&pass=secret", server.url());
    let config = || ZsetConfig::new(&url).unwrap();

    let queue =
        ZsetQueue::connect(config(), QueueName::new("q").unwrap()).await.unwrap();
    fill(&queue).await;
    queue.push_one(NewJob::new("wakes")).await.unwrap();
    while queue
        .claim_one(&ask("w").wait(Duration::from_millis(1)))
        .await
        .unwrap()
        .is_some()
    {}
    queue.recover(many(10)).await.unwrap();
    queue.leave(&ask("w").worker).await.unwrap();
    queue.redrive(&Which::All).await.unwrap();
    queue.pause().await.unwrap();
    queue.resume().await.unwrap();
    assert_sound(&queue).await;
    queue.purge().await.unwrap();

    let other = ZsetQueue::connect(config(), QueueName::new("other").unwrap()).await;
    let denied = other.unwrap().push_one(NewJob::new("x")).await.unwrap_err();
    assert!(matches!(denied, Error::Denied { .. }), "{}", denied.full_message());
}

/// Redis at its memory limit refuses new jobs whole, and still works off the old.
#[tokio::test]
async fn a_full_server_is_drained_and_refuses_pushes() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let leased = fill(&queue).await;
    queue.cancel(leased.job()).await.unwrap();
    server.command(&[b"CONFIG", b"SET", b"maxmemory", b"1"]);

    for job in [NewJob::new("plain"), NewJob::new("ranked").priority(Priority::HIGHEST)]
    {
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
    for part in ["held", "leased", "later", "ranked", "wake", "unique", "totals"] {
        let server = Server::start();
        let queue = open(&server, "q").await;
        queue.push_one(NewJob::new("x")).await.unwrap();
        let key = format!("{{q}}:{part}");
        server.command(&[b"SET", key.as_bytes(), b"foreign"]);

        let options = NewJob::new("y").priority(Priority::HIGHEST).delay(LEASE);
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

/// What an operator's dashboard would show as waste: see the targets in the README.
#[tokio::test]
async fn a_waiting_job_costs_little_more_than_a_list_element() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let payload = vec![b'x'; 256];
    let base = info(&server, "memory", "used_memory");
    let jobs = vec![NewJob::new(payload.clone()); 1000];
    for _ in 0..20 {
        queue.push(&jobs, None).await.unwrap();
    }
    let ours = info(&server, "memory", "used_memory") - base;

    let base = info(&server, "memory", "used_memory");
    for _ in 0..20 {
        let plain: Vec<&[u8]> = std::iter::once(&b"LPUSH"[..])
            .chain([&b"plain"[..]])
            .chain(std::iter::repeat_n(&payload[..], 1000))
            .collect();
        server.command(&plain);
    }
    let plain = info(&server, "memory", "used_memory") - base;

    assert!(ours * 100 <= plain * 115, "{ours} bytes against {plain}");
}

/// Pushes that are under way at once share commands, and each is stored once.
#[tokio::test]
async fn concurrent_pushes_share_commands() {
    let server = Server::start();
    let queue = std::sync::Arc::new(open(&server, "q").await);
    server.command(&[b"CONFIG", b"RESETSTAT"]);

    let push = |number: u32| {
        let queue = std::sync::Arc::clone(&queue);
        async move { queue.push_one(number.to_string().into()).await }
    };
    let pushes: tokio::task::JoinSet<_> = (0..64).map(push).collect();
    let pushed = pushes.join_all().await;

    assert!(pushed.iter().all(|answer| matches!(answer, Ok(Pushed::Stored(_)))));
    assert_eq!(queue.stats().await.unwrap().ready, 64);
    let sent = calls(&server, "lpush");
    assert!((1..=16).contains(&sent), "{sent} commands for 64 pushes");
}

/// Idle workers leave the server alone.
#[tokio::test]
async fn an_idle_waiting_claim_sends_at_most_two_commands_a_second() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    server.command(&[b"CONFIG", b"RESETSTAT"]);
    let wait = Duration::from_secs(4);

    queue.claim_one(&ask("w").wait(wait)).await.unwrap();

    let sent = ["evalsha", "eval", "blmove", "blpop"].map(|name| calls(&server, name));
    let sent: u64 = sent.iter().sum();
    assert!((1..=2 * wait.as_secs()).contains(&sent), "{sent} commands");
}

fn calls(server: &Server, command: &str) -> u64 {
    let answer = server.command(&[b"INFO", b"commandstats"]);
    let text = String::from_utf8(answer).unwrap();
    let prefix = format!("cmdstat_{command}:calls=");
    let count =
        text.lines().find_map(|line| line.strip_prefix(&prefix)?.split(',').next());
    count.map_or(0, |count| count.parse().unwrap())
}
