//! Tests that a database belongs to one queue, and that the queue never touches foreign
//! keys.

use std::time::{Duration, Instant};

use relq_conformance::{
    proxy::{Fault, FaultProxy, VirtualClock},
    server::Server,
};
use relq_core::{
    environment::Clock as _, error::Effect, limits::DEDUPLICATION_WINDOW,
    outcome::Pushed, unique::UniqueKey, *,
};
use relq_keyspace::{KeyspaceConfig, KeyspaceQueue};

use crate::fixture::{
    LEASE, LONG, ask, assert_sound, config, fill, keys, lease_many, many, open,
    open_among_foreign_keys, queue, say, sent, try_open,
};

fn refusal(opened: Result<KeyspaceQueue, Error>) -> String {
    let error = opened.unwrap_err();
    assert!(matches!(error, Error::Unusable { .. }), "{}", error.full_message());
    error.full_message()
}

/// R19: a key is foreign if it has neither the name of a job nor that of one of the queue's own
/// keys, or if it has the name of a ready job and is not a string.
#[tokio::test]
async fn a_database_with_foreign_keys_is_refused_and_left_as_it_is() {
    for (foreign, command) in [
        ("session:1", "SET session:1 x"),
        ("items", "SET items x"),
        ("{q}x", "SET {q}x x"),
        ("{other}:leased", "ZADD {other}:leased 1 x"),
        ("item_list", "RPUSH item_list x"),
        ("item_set", "SADD item_set x"),
    ] {
        let server = Server::start();
        say(&server, command);
        say(&server, "SET item_1 job");
        let before = keys(&server);

        let message = refusal(try_open(&server, "q").await);

        assert!(message.contains(foreign), "R19: {foreign} is foreign: {message}");
        assert_eq!(keys(&server), before, "R19: the keys beside {foreign}");
    }
}

/// R19: in a database whose foreign keys are tolerated, no call touches them.
#[tokio::test]
async fn tolerated_foreign_keys_are_never_touched() {
    let server = Server::start();
    let foreign = ["session:1", "{q}x", "items", "{other}:leased", "processing"];
    for key in foreign {
        say(&server, &format!("SET {key} theirs"));
    }
    let queue = open_among_foreign_keys(&server).await;
    fill(&queue).await;
    assert_eq!(queue.stats().await.unwrap().ready, 3);

    let taken = queue.claim(&ask("w").max(many(100))).await.unwrap();
    assert_eq!(taken.len(), 3);
    queue.release_worker(&ask("w").worker).await.unwrap();
    assert_sound(&queue).await;
    assert_eq!(queue.purge().await.unwrap(), 6);

    let mut left = foreign.map(str::to_owned).to_vec();
    left.extend(["relq:database", "{q}:marker"].map(str::to_owned));
    left.sort();
    assert_eq!(keys(&server), left);
    assert!(queue.claim_one(&ask("w")).await.unwrap().is_none());
}

/// A bare SET adds a job in the moment in which a foreign key vanishes. The job is
/// found, although the number of keys does not change.
#[tokio::test]
async fn a_bare_set_that_takes_a_foreign_keys_place_is_found() {
    let server = Server::start();
    say(&server, "SET theirs x");
    let queue = open_among_foreign_keys(&server).await;
    assert!(queue.claim_one(&ask("w")).await.unwrap().is_none());
    say(&server, "RENAME theirs item_1");

    let found = queue.claim_one(&ask("w")).await.unwrap().unwrap();

    assert_eq!(found.job().as_str(), "1");
}

#[tokio::test]
async fn a_second_queue_in_the_database_is_refused() {
    let server = Server::start();
    let first = open(&server).await;
    first.push_one(NewJob::new("x")).await.unwrap();

    let message = refusal(try_open(&server, "other").await);

    assert!(message.contains("\"q\""), "{message}");
    assert!(try_open(&server, "q").await.is_ok());
    let url = format!("{}?db=1", server.url());
    let config = relq_keyspace::KeyspaceConfig::new(&url).unwrap();
    let apart = KeyspaceQueue::connect(config, queue("other")).await.unwrap();
    assert_eq!(apart.stats().await.unwrap().ready, 0);
}

/// R19, R25: another client has deleted one of the keys that name the owner. Whichever it is,
/// the first write on a new connection writes it again, so that no second queue takes the
/// database.
#[tokio::test]
async fn a_deleted_key_of_the_owner_is_written_again() {
    for key in ["relq:database", "{q}:marker"] {
        let server = Server::start();
        let queue = open(&server).await;
        queue.push_one(NewJob::new("x")).await.unwrap();
        let owner = say(&server, &format!("GET {key}"));

        say(&server, &format!("DEL {key}"));
        say(&server, "CLIENT KILL TYPE normal");
        let began = Instant::now();
        while let Err(error) = queue.push_one(NewJob::new("y")).await {
            let is_cut =
                matches!(error, Error::Interrupted { .. } | Error::Unavailable { .. });
            let is_soon = began.elapsed() < LONG;
            assert!(is_cut && is_soon, "{key}: {}", error.full_message());
        }

        assert_eq!(say(&server, &format!("GET {key}")), owner, "R25: {key}");
        let message = refusal(try_open(&server, "other").await);
        assert!(message.contains("\"q\""), "R19: {key}: {message}");
    }
}

#[tokio::test]
async fn a_cluster_is_refused_with_the_reason() {
    let server = Server::start_with(&["--cluster-enabled", "yes"]);

    let message = refusal(try_open(&server, "q").await);

    assert!(message.contains("Redis Cluster"), "{message}");
}

/// A database that only plain clients have used is accepted.
#[tokio::test]
async fn a_database_of_plain_jobs_is_taken() {
    let server = Server::start();
    say(&server, "SET item_1 x");

    let queue = KeyspaceQueue::connect(config(&server), queue("q")).await.unwrap();

    assert!(queue.claim_one(&ask("w")).await.unwrap().is_some());
    assert_sound(&queue).await;
}

/// A queue with more jobs than one step of a purge covers is purged completely.
#[tokio::test]
async fn a_large_queue_is_purged_whole() {
    let server = Server::start();
    let queue = open(&server).await;
    for _ in 0..15 {
        queue.push(&vec![NewJob::new("x"); 1000], None).await.unwrap();
    }
    queue.claim(&ask("w").max(many(500))).await.unwrap();
    // More scheduled jobs than the pages of the database can take along.
    for first in (0..20_000).step_by(1000) {
        let later = |number: usize| {
            let job = NewJob::new("later").delay(LEASE);
            job.unique(UniqueKey::new(format!("key-{number}")).unwrap())
        };
        let jobs: Vec<_> = (first..first + 1000).map(later).collect();
        queue.push(&jobs, None).await.unwrap();
    }

    assert_eq!(queue.purge().await.unwrap(), 35_000);

    assert_eq!(keys(&server), ["relq:database", "{q}:marker"]);
}

/// R4, R23: a purge of several steps also forgets the ids of jobs that ended before it, and
/// of more of them than the pages of the database can take along.
#[tokio::test]
async fn a_purge_of_several_steps_forgets_the_ids_of_ended_jobs() {
    let server = Server::start();
    let queue = open(&server).await;
    let known = |page: usize, number: usize| {
        NewJob::new("known").id(JobId::new(format!("{page}-{number}")).unwrap())
    };
    for page in 0..3 {
        let jobs: Vec<_> = (0..1000).map(|number| known(page, number)).collect();
        queue.push(&jobs, None).await.unwrap();
        let held = queue.claim(&ask("w").max(many(1000))).await.unwrap();
        let done = held.into_iter().map(|one| one.receipt);
        let done = done.map(|receipt| Settlement::new(receipt, Disposition::Done));
        queue.settle(&done.collect::<Vec<_>>()).await.unwrap();
    }
    for count in [1000, 500] {
        queue.push(&vec![NewJob::new("x"); count], None).await.unwrap();
    }

    assert_eq!(queue.purge().await.unwrap(), 1500);

    assert_eq!(keys(&server), ["relq:database", "{q}:marker"]);
    let again = queue.push_one(known(0, 0)).await.unwrap();
    assert!(matches!(again, Pushed::Stored(_)), "{again:?}");
}

/// R16, R4: a purge that fails at its second page frees the unique keys and ids of the jobs
/// that it has removed, and of no others.
#[tokio::test]
async fn an_interrupted_purge_leaves_the_records_of_the_jobs_that_stay() {
    const JOBS: usize = 40;
    let server = Server::start();
    let proxy = FaultProxy::start(server.address(), VirtualClock::new()).unwrap();
    let operator = operator(&proxy).await;
    let producer = open(&server).await;
    let known = |number: usize| {
        let name = format!("job-{number}");
        let job = NewJob::new("known").id(JobId::new(&name).unwrap());
        job.unique(UniqueKey::new(name).unwrap())
    };
    let known: Vec<_> = (0..JOBS).map(known).collect();
    producer.push(&known, None).await.unwrap();
    for _ in 0..3 {
        producer.push(&vec![NewJob::new("x"); 1000], None).await.unwrap();
    }

    at_second_page(&proxy, Fault::Error("OOM the test says so".to_owned()));
    let failed = operator.purge().await.unwrap_err();
    assert_eq!(failed.effect(), Effect::Maybe, "{}", failed.full_message());

    let left = keys(&server);
    let stays = |number: usize| left.contains(&format!("item_job-{number}"));
    let staying: Vec<_> = (0..JOBS).filter(|number| stays(*number)).collect();
    assert!((1..JOBS).contains(&staying.len()), "{staying:?}");
    for records in ["HLEN {q}:unique", "ZCARD {q}:ids"] {
        let expected = format!(":{}\r\n", staying.len());
        assert_eq!(say(&server, records), expected, "{records}: jobs {staying:?} stay");
    }
    assert_sound(&producer).await;
    for (number, pushed) in
        producer.push(&known, None).await.unwrap().into_iter().enumerate()
    {
        let is_known = matches!(pushed, Pushed::Duplicate { .. });
        assert_eq!(is_known, stays(number), "job-{number}: {pushed:?}");
    }

    producer.purge().await.unwrap();
    assert_eq!(keys(&server), ["relq:database", "{q}:marker"]);
}

/// R4: a purge fails at its second page, so that jobs of a push stay. The push is repeated with
/// its token, because its reply was lost. No job that stays is stored a second time.
#[tokio::test]
async fn an_interrupted_purge_leaves_the_token_of_a_push_whose_jobs_stay() {
    let server = Server::start();
    let proxy = FaultProxy::start(server.address(), VirtualClock::new()).unwrap();
    let operator = operator(&proxy).await;
    let producer = open(&server).await;
    let (jobs, token) =
        (vec![NewJob::new("x"); 1000], PushToken::new("token").unwrap());
    let first = producer.push(&jobs, Some(&token)).await.unwrap();
    for _ in 0..3 {
        producer.push(&jobs, None).await.unwrap();
    }
    at_second_page(&proxy, Fault::Error("OOM the test says so".to_owned()));
    operator.purge().await.unwrap_err();
    let left = producer.stats().await.unwrap().ready;

    let again = producer.push(&jobs, Some(&token)).await.unwrap();

    assert_eq!(again, first, "R4: the result of the first call");
    assert_eq!(producer.stats().await.unwrap().ready, left, "R4: nothing is stored");
}

/// R4: a push comes while a purge runs, and its jobs may stay. Its token stays, too, and that
/// of an earlier push goes.
#[tokio::test]
async fn a_purge_leaves_the_token_of_a_push_that_came_meanwhile() {
    let (server, clock) = (Server::start(), VirtualClock::new());
    let proxy = FaultProxy::start(server.address(), clock.clone()).unwrap();
    let operator = operator(&proxy).await;
    operator.purge().await.unwrap();
    let jobs = vec![NewJob::new("x"); 1000];
    for token in ["early", "earlier"] {
        let token = PushToken::new(token).unwrap();
        operator.push(&jobs, Some(&token)).await.unwrap();
    }
    // The first page comes after a minute, the others after one more each, and the push
    // between the first two.
    let (before, minute) = (clock.now(), Duration::from_mins(1));
    proxy.listen(move |_| clock.advance(minute));
    let forget_at = before.plus(minute * 3 / 2).plus(DEDUPLICATION_WINDOW).unix_ms();
    let late = format!("ZADD {{q}}:calls {forget_at} late");
    let late = late.split(' ').map(str::to_owned);
    at_second_page(&proxy, Fault::Meanwhile(late.collect()));

    operator.purge().await.unwrap();

    let tokens = say(&server, "ZRANGE {q}:calls 0 -1");
    assert_eq!(tokens, "*1\r\n$4\r\nlate\r\n", "R4: the tokens that are left");
    assert_eq!(say(&server, "EXISTS {q}:answers"), ":0\r\n");
}

/// R19: a purge also removes what another client has put in place of the records of jobs.
#[tokio::test]
async fn a_purge_removes_what_took_the_place_of_records() {
    let server = Server::start();
    let queue = open(&server).await;
    for name in ["first", "second"] {
        let job = NewJob::new(name).id(JobId::new(name).unwrap());
        queue.push_one(job.unique(UniqueKey::new(name).unwrap())).await.unwrap();
    }
    let token = PushToken::new("token").unwrap();
    queue.push(&[NewJob::new("third")], Some(&token)).await.unwrap();
    for records in ["unique", "ids", "errors", "jobs", "calls"] {
        say(&server, &format!("SET {{q}}:{records} foreign"));
    }

    assert_eq!(queue.purge().await.unwrap(), 3);

    assert_eq!(keys(&server), ["relq:database", "{q}:marker"]);
}

/// R21: a purge reads about a mebibyte of scheduled or dead jobs in one step.
#[tokio::test]
async fn large_jobs_are_purged_in_steps() {
    let server = Server::start();
    let queue = open(&server).await;
    let large = || NewJob::new(vec![b'x'; ClaimRequest::MAX_BYTES * 3 / 5]);
    for _ in 0..4 {
        queue.push_one(large()).await.unwrap();
        let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
        queue.bury(&held.receipt, "no").await.unwrap();
        queue.push_one(large().delay(LEASE)).await.unwrap();
    }
    say(&server, "CONFIG RESETSTAT");

    assert_eq!(queue.purge().await.unwrap(), 8);

    let steps = sent(&server);
    assert!(
        steps >= 4,
        "R21: two of eight large jobs fit into one step: {steps} steps"
    );
    assert_eq!(keys(&server), ["relq:database", "{q}:marker"]);
}

/// R6: a claim that finds its jobs on several pages of the database takes at most 1 MiB of
/// them in sum.
#[tokio::test]
async fn a_claim_of_several_pages_is_bounded_by_bytes() {
    const JOBS: usize = 12;
    let server = Server::start();
    let queue = open(&server).await;
    // About one job is on each page of a thousand keys.
    lease_many(&server, &queue, 1000 * JOBS).await;
    let payload = vec![b'x'; ClaimRequest::MAX_BYTES * 2 / 5];
    for _ in 0..JOBS {
        queue.push_one(NewJob::new(payload.clone())).await.unwrap();
    }

    let mut found = 0;
    while found < JOBS {
        let claimed = queue.claim(&ask("w").max(many(100))).await.unwrap();
        let bytes: usize = claimed.iter().map(Delivery::total_bytes).sum();
        let jobs = claimed.len();
        assert!(jobs > 0, "R1: {found} of {JOBS} jobs are found");
        assert!(
            bytes <= ClaimRequest::MAX_BYTES,
            "R6: one claim takes {jobs} jobs of {bytes} bytes"
        );
        found += jobs;
    }
}

/// R23: foreign keys do not count as ready jobs, however many there are.
#[tokio::test]
async fn ten_thousands_of_foreign_keys_are_no_ready_jobs() {
    let server = Server::start();
    let set = "for i = 1, ARGV[1] do redis.call('SET', 'session:' .. i, 'theirs') end";
    server.command(&["EVAL", set, "0", "20000"].map(str::as_bytes));
    let queue = open_among_foreign_keys(&server).await;
    queue.push(&vec![NewJob::new("x"); 3], None).await.unwrap();

    assert_eq!(queue.stats().await.unwrap().ready, 3);
}

/// A foreign key is found although it is not among the first thousand keys of the database.
#[tokio::test]
async fn a_foreign_key_behind_the_first_page_is_refused() {
    let server = Server::start();
    let set = "for i = 1, ARGV[1] do redis.call('SET', 'item_' .. i, 'job') end";
    server.command(&["EVAL", set, "0", "5000"].map(str::as_bytes));
    // The place of a key in the database is random. That all five are on the first page, which
    // has a fifth of the keys, happens once in 3,125 runs.
    for name in 0..5 {
        let key = format!("session:{name}");
        say(&server, &format!("SET {key} theirs"));

        let message = refusal(try_open(&server, "q").await);

        assert!(message.contains(&key), "{message}");
        say(&server, &format!("DEL {key}"));
    }
}

/// R9, R20: jobs that another client has renamed get a lease, wherever they are among
/// thousands of keys.
#[tokio::test]
async fn stray_processing_keys_on_every_page_are_given_leases() {
    let server = Server::start();
    let queue = open(&server).await;
    queue.resume().await.unwrap();
    let set = "for i = 1, ARGV[1] do redis.call('SET', 'item_' .. i, 'job') end";
    server.command(&["EVAL", set, "0", "5000"].map(str::as_bytes));
    for id in 1..=20 {
        say(&server, &format!("RENAME item_{id} processing_{id}"));
    }

    for _ in 0..20 {
        queue.recover(many(10)).await.unwrap();
    }

    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.leased, stats.ready), (20, 4980));
    assert_sound(&queue).await;
}

/// R20: the search goes on behind a page of the database that has no such key.
#[tokio::test]
async fn a_stray_processing_key_is_found_behind_pages_without_one() {
    let server = Server::start();
    let queue = open(&server).await;
    queue.resume().await.unwrap();
    let set = "for i = 1, ARGV[1] do redis.call('SET', 'item_' .. i, 'job') end";
    server.command(&["EVAL", set, "0", "5000"].map(str::as_bytes));
    for id in 1..=8 {
        say(&server, &format!("RENAME item_{id} processing_{id}"));

        for _ in 0..20 {
            queue.recover(many(10)).await.unwrap();
        }

        assert_eq!(queue.stats().await.unwrap().leased, id);
    }
}

/// R16: when another client has deleted jobs, recovery frees their unique keys on every page.
#[tokio::test]
async fn the_unique_keys_of_hundreds_of_deleted_jobs_are_freed() {
    let server = Server::start();
    let queue = open(&server).await;
    let jobs: Vec<_> = (0..600)
        .map(|n| {
            let key = UniqueKey::new(format!("key-{n}")).unwrap();
            NewJob::new("x").unique(key).id(JobId::new(format!("job-{n}")).unwrap())
        })
        .collect();
    queue.push(&jobs, None).await.unwrap();
    for n in 0..600 {
        say(&server, &format!("DEL item_job-{n}"));
    }

    for _ in 0..30 {
        queue.recover(many(10)).await.unwrap();
    }

    let bound = say(&server, "HLEN {q}:unique");
    assert_eq!(bound, ":0\r\n");
    assert_sound(&queue).await;
}

/// An operator behind the proxy. The server knows the script of its purge, so that each page
/// is one command.
async fn operator(proxy: &FaultProxy) -> KeyspaceQueue {
    let url = proxy.actor("operator").unwrap().url().to_owned();
    let config = KeyspaceConfig::new(&url).unwrap();
    let operator = KeyspaceQueue::connect(config, queue("q")).await.unwrap();
    operator.purge().await.unwrap();
    operator
}

/// Plans a fault at the second page of the operator's next purge.
fn at_second_page(proxy: &FaultProxy, fault: Fault) {
    let second_page = proxy.steps_by("operator").len() + 2;
    proxy.plan("operator", u32::try_from(second_page).unwrap(), fault);
}
