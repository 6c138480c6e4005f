//! Ready jobs are found, however few they are, and no claim spins when there are none.

use std::{collections::BTreeSet, time::Duration};

use relq_conformance::{
    assert_within,
    proxy::{FaultProxy, VirtualClock},
    server::Server,
};
use relq_core::{
    operator::{JobState, PeekRequest},
    outcome::Settled,
    *,
};
use relq_keyspace::{KeyspaceConfig, KeyspaceQueue};

use crate::fixture::{
    LONG, ask, assert_sound, keys, lease_many, many, open, queue, say, sent,
};

/// R1, R9: a claim finds the only ready job among many leased ones. Random draws nearly
/// always miss it, but the sweep through the database finds it.
#[tokio::test]
async fn one_ready_job_among_a_hundred_thousand_leased_is_found() {
    let server = Server::start();
    let queue = open(&server).await;
    lease_many(&server, &queue, 100_000).await;

    for round in 0..5 {
        queue.push_one(NewJob::new(round.to_string())).await.unwrap();
        let found = queue.claim_one(&ask("w")).await.unwrap().unwrap();
        assert_eq!(found.payload, round.to_string());
        queue.ack(&found.receipt).await.unwrap();
    }

    assert_eq!(queue.stats().await.unwrap().leased, 100_000);
    assert!(queue.claim_one(&ask("w")).await.unwrap().is_none());
}

/// R23: a claim picks jobs by one script, and leases them by another. If the queue is paused
/// between the two, the claim leases none of the picked jobs.
#[tokio::test]
async fn a_pause_behind_the_pick_of_a_claim_is_heeded() {
    let server = Server::start();
    let proxy = FaultProxy::start(server.address(), VirtualClock::new()).unwrap();
    let config = KeyspaceConfig::new(proxy.actor("worker").unwrap().url()).unwrap();
    let worker = KeyspaceQueue::connect(config, queue("q")).await.unwrap();
    let operator = open(&server).await;
    operator.push_one(NewJob::new("job")).await.unwrap();
    proxy.park();
    let claim = tokio::spawn(async move { worker.claim_one(&ask("w")).await });
    loop {
        let step = proxy.parked(1).await.remove(0);
        if step.label().contains("claim") {
            break;
        }
        assert!(proxy.pass("worker", step.step), "{step}");
    }

    operator.pause().await.unwrap();
    proxy.heal().await.unwrap();

    assert_eq!(claim.await.unwrap().unwrap(), None, "R23: the queue is paused");
    operator.resume().await.unwrap();
    let taken = operator.claim_one(&ask("w")).await.unwrap().unwrap();
    assert_eq!((&taken.payload[..], taken.attempt()), (&b"job"[..], 1));
}

/// A claim sends only one command if no job is ready, however many jobs are leased,
/// because the number of keys shows it.
#[tokio::test]
async fn a_claim_where_nothing_is_ready_is_one_command() {
    let server = Server::start();
    let queue = open(&server).await;
    lease_many(&server, &queue, 100_000).await;
    say(&server, "CONFIG RESETSTAT");

    assert!(queue.claim_one(&ask("w")).await.unwrap().is_none());

    assert_eq!(sent(&server), 1);
}

/// A waiting claim on an empty queue sends at most two commands a second.
#[tokio::test]
async fn an_idle_waiting_claim_sends_at_most_two_commands_a_second() {
    let server = Server::start();
    let queue = open(&server).await;
    lease_many(&server, &queue, 1000).await;
    say(&server, "CONFIG RESETSTAT");
    let wait = Duration::from_secs(4);

    queue.claim(&ask("w").max(many(64)).wait(wait)).await.unwrap();

    let sent = sent(&server);
    // The waiting connection reads the marker when it is opened (R25).
    let most = 2 * wait.as_secs() + 1;
    assert!((1..=most).contains(&sent), "{sent} commands");
}

/// A key that has the name of a job but another type than a string does not make claims
/// repeat their search without end.
#[tokio::test]
async fn a_key_that_is_no_job_causes_no_busy_loop() {
    let server = Server::start();
    let queue = open(&server).await;
    say(&server, "RPUSH item_list a");
    queue.claim_one(&ask("w").wait(Duration::from_millis(1))).await.unwrap();
    say(&server, "CONFIG RESETSTAT");
    let wait = Duration::from_secs(3);

    queue.claim_one(&ask("w").wait(wait)).await.unwrap();

    let sent = sent(&server);
    assert!(sent <= 3 * wait.as_secs() + 2, "{sent} commands");
    let problems = queue.audit().await.unwrap().problems;
    assert!(problems.iter().any(|one| one.contains("item_list")), "{problems:?}");
}

/// One call claims a thousand jobs, each of them once.
#[tokio::test]
async fn a_thousand_jobs_are_claimed_and_finished_in_one_call() {
    let server = Server::start();
    let queue = open(&server).await;
    let jobs: Vec<_> = (0..1000).map(|n: u32| NewJob::new(n.to_string())).collect();
    queue.push(&jobs, None).await.unwrap();

    let taken = queue.claim(&ask("w").max(many(1000))).await.unwrap();
    let payloads: BTreeSet<_> = taken.iter().map(|one| one.payload.clone()).collect();
    assert_eq!((taken.len(), payloads.len()), (1000, 1000));

    let done: Vec<_> = taken
        .into_iter()
        .map(|d| Settlement::new(d.receipt, Disposition::Done))
        .collect();
    let settled = queue.settle(&done).await.unwrap();
    assert!(settled.iter().all(|answer| *answer == Settled::Applied));
    assert_eq!(queue.stats().await.unwrap().finished, 1000);
    assert_sound(&queue).await;
    assert_eq!(
        keys(&server),
        ["relq:database", "{q}:marker", "{q}:totals", "{q}:wake"]
    );
}

/// R20: a bare SET notifies nobody; a waiting claim finds its job by the recheck.
#[tokio::test]
async fn a_bare_set_is_found_by_a_waiting_claim() {
    let server = Server::start();
    let queue = open(&server).await;
    let set = async {
        while !say(&server, "CLIENT LIST").contains("cmd=blpop") {
            tokio::task::yield_now().await;
        }
        say(&server, "SET item_7 hello");
    };

    let asking = ask("w").wait(LONG);
    let (found, ()) = tokio::join!(queue.claim_one(&asking), set);

    assert_eq!(found.unwrap().unwrap().payload, "hello");
    assert_sound(&queue).await;
}

/// A client that pushes a job with a bare SET can also send the notification itself.
#[tokio::test]
async fn a_notification_by_hand_wakes_at_once() {
    assert_within(Duration::from_millis(800), async || {
        let server = Server::start();
        let queue = open(&server).await;
        let set = async {
            while !say(&server, "CLIENT LIST").contains("cmd=blpop") {
                tokio::task::yield_now().await;
            }
            say(&server, "SET item_7 hello");
            say(&server, "LPUSH {q}:wake 1");
            std::time::Instant::now()
        };

        let asking = ask("w").wait(LONG);
        let (found, notified) = tokio::join!(queue.claim_one(&asking), set);

        let took = notified.elapsed();
        assert_eq!(found.unwrap().unwrap().payload, "hello");
        took
    })
    .await;
}

/// A producer of another kind may push and notify before relq has used the queue.
#[tokio::test]
async fn a_notification_by_hand_may_come_first() {
    let server = Server::start();
    say(&server, "SET item_first first");
    say(&server, "LPUSH {q}:wake 1");

    let queue = open(&server).await;

    let claimed = queue.claim(&ask("worker")).await.unwrap();
    assert_eq!(claimed[0].payload, "first");
    assert_sound(&queue).await;
}

/// R23: the pages show every job that stays, although other jobs are pushed meanwhile
/// and the server's hash table grows.
#[tokio::test]
async fn pages_show_what_stays_while_others_come() {
    let server = Server::start();
    let queue = open(&server).await;
    let push = |from: usize, to: usize| {
        (from..to).map(|n| NewJob::new(n.to_string())).collect::<Vec<_>>()
    };
    queue.push_all(&push(0, 3000)).await.unwrap();
    let (mut shown, mut pushed) = (BTreeSet::new(), 3000);
    let mut asking = PeekRequest::new(JobState::Ready, many(70));

    loop {
        let page = queue.peek(&asking).await.unwrap();
        assert!(page.jobs.len() <= 70);
        shown.extend(page.jobs.into_iter().map(|job| job.payload));
        let Some(next) = page.next else { break };
        asking = asking.after(next);
        if pushed < 20_000 {
            queue.push_all(&push(pushed, pushed + 500)).await.unwrap();
            pushed += 500;
        }
    }

    let missing = (0..3000).filter(|n| !shown.contains(n.to_string().as_bytes()));
    assert_eq!(missing.count(), 0);
}
