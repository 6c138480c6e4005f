//! Tests of keys that clients other than relq set or rename.

use std::{
    collections::BTreeSet,
    time::{Duration, Instant},
};

use relq_conformance::server::Server;
use relq_core::{
    operator::{
        Cancelled, JobLookup, JobState, JobView, PeekRequest, Selection, StateDetail,
        find_job,
    },
    outcome::{DuplicateOf, Pushed, Settled},
    unique::UniqueKey,
    *,
};
use relq_keyspace::KeyspaceQueue;

use crate::fixture::{LEASE, ask, assert_sound, keys, lease_many, many, open, say};

async fn take_all(queue: &KeyspaceQueue) -> Vec<Delivery> {
    queue.claim(&ask("w").max(many(100))).await.unwrap()
}

async fn the_dead(queue: &KeyspaceQueue) -> Vec<JobView> {
    let ask = PeekRequest::new(JobState::Dead, many(100));
    queue.peek(&ask).await.unwrap().jobs
}

fn reason(job: &JobView) -> &str {
    match &job.detail {
        StateDetail::Dead { reason, .. } => reason,
        other => panic!("{other:?}"),
    }
}

/// R20: any client can push a job with `SET item_ID payload`.
#[tokio::test]
async fn a_plain_set_is_a_job_of_that_id() {
    let server = Server::start();
    let queue = open(&server).await;
    assert_eq!(say(&server, "INCR item_id"), ":1\r\n");
    say(&server, "SET item_1 hello");
    say(&server, "DEL item_id");

    let taken = take_all(&queue).await;

    assert_eq!((taken[0].job().as_str(), taken[0].attempt()), ("1", 1));
    assert_eq!(taken[0].payload, "hello");
    queue.retry(&taken[0].receipt, LEASE, "no").await.unwrap();
    let cancelled = queue.cancel(taken[0].job()).await.unwrap();
    assert_eq!(cancelled, Cancelled::Removed(JobState::Scheduled));
    assert_sound(&queue).await;
}

/// A ready job is cancelled by its id, whichever client set it.
#[tokio::test]
async fn a_plain_set_is_cancelled_by_its_id() {
    let server = Server::start();
    let queue = open(&server).await;
    say(&server, "SET item_1 hello");

    let cancelled = queue.cancel(&JobId::new("1").unwrap()).await.unwrap();

    assert_eq!(cancelled, Cancelled::Removed(JobState::Ready));
    assert_eq!(keys(&server), ["relq:database", "{q}:marker", "{q}:totals"]);
}

/// R3: a job whose key holds no valid id is buried with its bytes. Before that, a listing
/// of the ready jobs gives the reason.
#[tokio::test]
async fn names_without_a_valid_id_are_buried() {
    let server = Server::start();
    let queue = open(&server).await;
    let long = format!("item_{}", "x".repeat(200));
    let names: [&[u8]; 4] = [b"item_", b"item_a\nb", b"item_\xff", long.as_bytes()];
    for name in names {
        server.command(&[b"SET", name, b"payload"]);
    }
    say(&server, "SET item_good good");
    let ask = PeekRequest::new(JobState::Ready, many(100));
    let ready = queue.peek(&ask).await.unwrap().jobs;

    let taken = take_all(&queue).await;

    let payloads: Vec<_> = taken.iter().map(|one| one.payload.clone()).collect();
    assert_eq!(payloads, ["good"]);
    let dead = the_dead(&queue).await;
    assert_eq!(dead.len(), names.len());
    for job in &dead {
        assert_eq!(job.payload, "payload");
        assert!(reason(job).contains("no valid job id"), "{}", reason(job));
    }
    let listed: BTreeSet<_> =
        ready.iter().filter_map(|job| job.unreadable.as_deref()).collect();
    assert_eq!(listed, dead.iter().map(reason).collect());
    assert_sound(&queue).await;
}

/// R1, R3: an entry that another client damages while its job is leased is not dropped when
/// its worker retries it, gives it back or stops.
#[tokio::test]
async fn a_leased_entry_that_was_damaged_is_not_dropped() {
    let retry = Disposition::Retry { after: Duration::ZERO, error: "again".into() };
    let server = Server::start();
    let queue = open(&server).await;
    for disposition in [Some(retry), Some(Disposition::GiveBack), None] {
        queue.push_one("x".into()).await.unwrap();
        let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
        let lease =
            keys(&server).into_iter().find(|key| key.starts_with("processing_"));
        let damaged = b"\xf5RQ\x01broken";
        server.command(&[b"SET", lease.unwrap().as_bytes(), damaged]);

        if let Some(disposition) = &disposition {
            let settled = queue.settle_one(&held.receipt, disposition.clone()).await;
            assert_eq!(settled.unwrap(), Settled::Applied);
        } else {
            queue.release_worker(&ask("w").worker).await.unwrap();
        }

        let dead: Vec<_> =
            the_dead(&queue).await.into_iter().map(|job| job.payload).collect();
        assert_eq!(dead, [&damaged[..]], "{disposition:?}");
        assert_sound(&queue).await;
        queue.purge().await.unwrap();
    }
}

/// R3: a listing says of a leased job that another client removed its entry, so that it is
/// not taken for a job with an empty payload.
#[tokio::test]
async fn a_leased_entry_that_was_removed_is_listed_as_such() {
    let server = Server::start();
    let queue = open(&server).await;
    queue.push_one("x".into()).await.unwrap();
    take_all(&queue).await;
    let lease = keys(&server).into_iter().find(|key| key.starts_with("processing_"));
    say(&server, &format!("DEL {}", lease.unwrap()));

    let ask = PeekRequest::new(JobState::Leased, many(100));
    let leased = queue.peek(&ask).await.unwrap().jobs;

    let why = "it cannot be read: its entry was removed";
    assert_eq!(leased[0].unreadable.as_deref(), Some(why));
}

/// R3: an entry that relq wrote is buried if its key holds another id. A listing tells the
/// reason before.
#[tokio::test]
async fn an_entry_under_another_id_is_buried() {
    let server = Server::start();
    let queue = open(&server).await;
    let pushed = queue.push_one(NewJob::new("x")).await.unwrap();
    say(&server, &format!("RENAME item_{} item_other", pushed.job()));
    let ask = PeekRequest::new(JobState::Ready, many(100));
    let ready = queue.peek(&ask).await.unwrap().jobs;

    assert_eq!(take_all(&queue).await, []);

    let dead = the_dead(&queue).await;
    assert_eq!(dead.len(), 1);
    assert_eq!(ready[0].unreadable.as_deref(), Some(reason(&dead[0])));
    assert_eq!(ready[0].id, dead[0].id, "the id under which cancel finds it");
    assert_sound(&queue).await;
}

/// R7: an id that is set again while its job is leased makes another job. Neither is
/// lost.
#[tokio::test]
async fn an_id_set_again_while_it_is_leased_is_a_second_job() {
    let server = Server::start();
    let queue = open(&server).await;
    say(&server, "SET item_5 old");
    let old = take_all(&queue).await.remove(0);
    say(&server, "SET item_5 new");

    assert_eq!(queue.release_worker(&ask("w").worker).await.unwrap().jobs, 1);
    let mut both = take_all(&queue).await;

    both.sort_by(|a, b| a.payload.cmp(&b.payload));
    let found: Vec<_> =
        both.iter().map(|one| (one.job().as_str(), &one.payload[..])).collect();
    assert_eq!(found, [("5", &b"new"[..]), ("5~2", b"old")]);
    assert_eq!(queue.ack(&old.receipt).await.unwrap(), Settled::LeaseLost);
    assert_sound(&queue).await;
}

/// R16: a client has copied a job that holds a unique key. The end of the copy does not free
/// the key, which belongs to the job that was copied.
#[tokio::test]
async fn a_copy_of_a_job_has_no_unique_key() {
    let server = Server::start();
    let queue = open(&server).await;
    let key = || UniqueKey::new("k").unwrap();
    let id = queue.push_one(NewJob::new("job").unique(key())).await.unwrap();
    let copied = format!("COPY item_{} item_7", id.job());
    assert_eq!(say(&server, &copied), ":1\r\n");

    let copy = JobId::new("7").unwrap();
    let cancelled = queue.cancel(&copy).await.unwrap();

    assert_eq!(cancelled, Cancelled::Removed(JobState::Ready));
    let again = queue.push_one(NewJob::new("again").unique(key())).await.unwrap();
    assert!(matches!(again, Pushed::Duplicate { .. }), "the key is held: {again:?}");
    assert_sound(&queue).await;
}

/// R11: the error of a job that gets another name is not that of the job with its old name.
#[tokio::test]
async fn a_renamed_job_takes_its_last_error_with_it() {
    for delay in [Duration::ZERO, Duration::from_millis(1)] {
        let server = Server::start();
        let queue = open(&server).await;
        say(&server, "SET item_7 old");
        let taken = take_all(&queue).await;
        say(&server, "SET item_7 new");

        queue.retry(&taken[0].receipt, delay, "boom").await.unwrap();
        let (start, mut jobs) = (Instant::now(), Vec::new());
        while jobs.len() < 2 {
            queue.recover(many(100)).await.unwrap();
            let ask = PeekRequest::new(JobState::Ready, many(100));
            jobs = queue.peek(&ask).await.unwrap().jobs;
            assert!(start.elapsed() < LEASE, "the job does not become ready");
        }

        let of = |payload: &str| {
            let found = jobs.iter().find(|job| job.payload == payload).unwrap();
            found.last_error.clone()
        };
        assert_eq!(of("old").as_deref(), Some("boom"), "{delay:?}");
        assert_eq!(of("new"), None, "{delay:?}");
        assert_sound(&queue).await;
    }
}

/// R1: a dead letter that gets another name when it is ready again removes no other dead
/// letter that has this name.
#[tokio::test]
async fn a_renamed_job_removes_no_other() {
    let server = Server::start();
    let queue = open(&server).await;
    for payload in ["a", "b"] {
        say(&server, &format!("SET item_7 {payload}"));
        let taken = take_all(&queue).await.remove(0);
        queue.bury(&taken.receipt, "boom").await.unwrap();
    }
    say(&server, "SET item_7 c");

    let first = Selection::Only(vec![JobId::new("7").unwrap()]);
    assert_eq!(queue.redrive(&first).await.unwrap().moved, 1);

    let left = the_dead(&queue).await;
    assert_eq!(left.len(), 1);
    assert_eq!(left[0].payload, "b");
    assert_eq!(take_all(&queue).await.len(), 2, "a and c");
    assert_sound(&queue).await;
}

/// R3: when two jobs have the same long id, the new id of the second one is never cut
/// within a character.
#[tokio::test]
async fn a_long_id_set_again_is_cut_between_letters() {
    // The last of these ids is as long as an id may be.
    for before in (116..=121).chain([JobId::MAX_BYTES - 4]) {
        let server = Server::start();
        let queue = open(&server).await;
        let long = format!("{}{}", "x".repeat(before), "\u{1f600}");
        say(&server, &format!("SET item_{long} old"));
        take_all(&queue).await;
        say(&server, &format!("SET item_{long} new"));

        assert_eq!(queue.release_worker(&ask("w").worker).await.unwrap().jobs, 1);

        assert_eq!(take_all(&queue).await.len(), 2, "cut after {before} bytes");
        assert_eq!(the_dead(&queue).await, []);
        assert_sound(&queue).await;
    }
}

/// R4: an id that a plain SET uses is known while its job is ready, whatever options
/// the second push has.
#[tokio::test]
async fn an_id_that_a_plain_set_took_is_a_duplicate() {
    let server = Server::start();
    let queue = open(&server).await;
    say(&server, "SET item_7 first");
    let id = JobId::new("7").unwrap();
    let again = [
        NewJob::new("second").id(id.clone()),
        NewJob::new("second").id(id.clone()).delay(LEASE),
    ];
    for job in again {
        let pushed = queue.push_one(job).await.unwrap();
        let by = DuplicateOf::Id;
        assert_eq!(pushed, Pushed::Duplicate { existing: id.clone(), by });
    }

    let taken = take_all(&queue).await;

    let found: Vec<_> = taken.iter().map(|one| &one.payload[..]).collect();
    assert_eq!(found, [b"first"]);
    assert_eq!(queue.stats().await.unwrap().scheduled, 0);
    assert_sound(&queue).await;
}

/// R20, R31: the id in the key of a ready job is known to a listing and to a search, too,
/// whatever the value of the key is.
#[tokio::test]
async fn a_job_that_a_plain_set_stored_is_found_by_its_id() {
    let values: [(&[u8], bool); 2] = [(b"first", true), (b"\xf5RQ\x01junk", false)];
    for (value, is_readable) in values {
        let server = Server::start();
        let queue = open(&server).await;
        server.command(&[b"SET", b"item_7", value]);
        let id = JobId::new("7").unwrap();

        let found = find_job(&queue, &id).await.unwrap();

        let JobLookup::Stored(found) = found else { panic!("{found:?}") };
        assert_eq!((found.job.id.as_ref(), &found.job.payload[..]), (Some(&id), value));
        assert_eq!(found.job.detail, StateDetail::Ready);
        assert_eq!(found.job.unreadable.is_none(), is_readable, "{:?}", found.job);
    }
}

/// A key of another type is not a job, so it makes no push a duplicate.
#[tokio::test]
async fn a_key_of_another_type_is_no_job() {
    let server = Server::start();
    let queue = open(&server).await;
    say(&server, "LPUSH item_7 other");
    let job = NewJob::new("mine").id(JobId::new("7").unwrap());

    let pushed = queue.push_one(job).await.unwrap();

    assert!(matches!(pushed, Pushed::Stored(_)), "{pushed:?}");
    assert_eq!(take_all(&queue).await[0].payload, "mine");
}

/// R9: a job that a client of the original pattern renamed and left behind comes back,
/// although it had no lease.
#[tokio::test]
async fn a_stray_processing_key_is_given_a_lease() {
    let server = Server::start();
    let queue = open(&server).await;
    say(&server, "SET item_5 hello");
    say(&server, "RENAME item_5 processing_5");
    assert!(!queue.audit().await.unwrap().problems.is_empty());
    assert_eq!(take_all(&queue).await, []);

    let first = queue.recover(many(100)).await.unwrap();

    assert_eq!((first.requeued, queue.stats().await.unwrap().leased), (0, 1));
    assert_sound(&queue).await;
    let leased = PeekRequest::new(JobState::Leased, many(10));
    let shown = queue.peek(&leased).await.unwrap().jobs.remove(0);
    assert_eq!(&shown.payload[..], b"hello", "R23: the job of the renamed key");
    let detail = &shown.detail;
    let StateDetail::Leased { worker, .. } = detail else { panic!("{detail:?}") };
    assert_eq!(worker.as_str(), "unknown", "R23: the holder of the renamed key");
    say(&server, "ZADD {q}:leased 1 processing_5");
    assert_eq!(queue.recover(many(100)).await.unwrap().requeued, 1);
    let back = take_all(&queue).await;
    assert_eq!((back[0].job().as_str(), &back[0].payload[..]), ("5", &b"hello"[..]));
}

/// R1, R9: another client has renamed a job and left it behind, and a job of the same id is set
/// meanwhile. Both are served.
#[tokio::test]
async fn a_stray_processing_key_whose_id_is_set_again_is_a_second_job() {
    let server = Server::start();
    let queue = open(&server).await;
    say(&server, "SET item_5 old");
    say(&server, "RENAME item_5 processing_5");
    queue.recover(many(100)).await.unwrap();
    say(&server, "SET item_5 new");

    say(&server, "ZADD {q}:leased 1 processing_5");
    let requeued = queue.recover(many(100)).await.unwrap().requeued;

    assert_eq!(requeued, 1, "R9: the job that was left behind");
    let mut both = take_all(&queue).await;
    both.sort_by(|a, b| a.payload.cmp(&b.payload));
    let found: Vec<_> =
        both.iter().map(|one| (one.job().as_str(), &one.payload[..])).collect();
    assert_eq!(found, [("5", &b"new"[..]), ("5~2", b"old")], "R1: both jobs");
    assert_sound(&queue).await;
}

/// A job with the unique key `k` and the client's id `mine`.
fn bound() -> NewJob {
    let key = UniqueKey::new("k").unwrap();
    NewJob::new("bound").unique(key).id(JobId::new("mine").unwrap())
}

/// A second job with the unique key `k`, and with a generated id.
fn rival() -> NewJob {
    NewJob::new("rival").unique(UniqueKey::new("k").unwrap())
}

/// R16, R4: a job with a unique key and a client's id comes back in each way, while another
/// client has set a job under its id. The job gets another id. Its key follows it, and nothing
/// is remembered of a job that no longer exists.
#[tokio::test]
async fn a_renamed_job_takes_its_unique_key_with_it() {
    let retry = Disposition::Retry { after: Duration::ZERO, error: "no".into() };
    let postpone = Disposition::Postpone { after: Duration::ZERO };
    let settled = [Disposition::GiveBack, retry, postpone].map(Some);
    for way in settled.into_iter().chain([None]) {
        let server = Server::start();
        let queue = open(&server).await;
        queue.push_one(bound()).await.unwrap();
        let held = take_all(&queue).await.remove(0);
        say(&server, "SET item_mine plain");

        match &way {
            Some(way) => {
                queue.settle_one(&held.receipt, way.clone()).await.unwrap();
            }
            None => lose_lease(&server),
        }
        queue.recover(many(100)).await.unwrap();

        let refused = queue.push_one(rival()).await.unwrap();
        let existing = JobId::new("mine~2").unwrap();
        let by = DuplicateOf::UniqueKey;
        let holder = Pushed::Duplicate { existing, by };
        assert_eq!(refused, holder, "R16: the holder of the key after {way:?}");
        assert_sound(&queue).await;
        for job in take_all(&queue).await {
            queue.ack(&job.receipt).await.unwrap();
        }
        assert_sound(&queue).await;
        let stored = queue.push_one(rival()).await.unwrap();
        assert!(matches!(stored, Pushed::Stored(_)), "R16: {way:?}: {stored:?}");
    }
}

/// Lets the lease of the only leased job end.
fn lose_lease(server: &Server) {
    let leased = keys(server).into_iter().find(|key| key.starts_with("processing_"));
    say(server, &format!("ZADD {{q}}:leased 1 {}", leased.unwrap()));
}

/// R16, R4: a job that an operator ends with DEL no longer reserves its unique key. Its
/// id is remembered as long as the id of any other ended job.
#[tokio::test]
async fn a_deleted_item_frees_its_key_and_its_id() {
    let server = Server::start();
    let queue = open(&server).await;
    queue.push_one(bound()).await.unwrap();
    let held = take_all(&queue).await.remove(0);
    queue.retry(&held.receipt, std::time::Duration::ZERO, "no").await.unwrap();
    queue.recover(many(100)).await.unwrap();
    assert_eq!(say(&server, "DEL item_mine"), ":1\r\n");

    queue.recover(many(100)).await.unwrap();

    assert_sound(&queue).await;
    let again = queue.push_one(bound()).await.unwrap();
    assert!(
        matches!(again, Pushed::Duplicate { by: DuplicateOf::Id, .. }),
        "{again:?}"
    );
    let rival = queue.push_one(rival()).await.unwrap();
    assert!(matches!(rival, Pushed::Stored(_)), "{rival:?}");
    say(&server, "ZADD {q}:ids 1 mine");
    let cancelled = queue.cancel(rival.job()).await.unwrap();
    assert_eq!(cancelled, Cancelled::Removed(JobState::Ready));
    assert!(matches!(queue.push_one(bound()).await.unwrap(), Pushed::Stored(_)));
}

/// R11: the last error of a job that an operator ended with DEL is not that of the next job
/// of its key, and does not stay. The job has no other record.
#[tokio::test]
async fn a_deleted_item_takes_its_last_error_with_it() {
    let server = Server::start();
    let queue = open(&server).await;
    say(&server, "SET item_7 old");
    let held = take_all(&queue).await.remove(0);
    queue.retry(&held.receipt, Duration::ZERO, "boom").await.unwrap();
    queue.recover(many(100)).await.unwrap();
    assert_eq!(say(&server, "DEL item_7"), ":1\r\n");

    queue.recover(many(100)).await.unwrap();

    assert_eq!(
        keys(&server),
        ["relq:database", "{q}:marker", "{q}:wake"],
        "R11: the records of the deleted job"
    );
    say(&server, "SET item_7 new");
    let ask = PeekRequest::new(JobState::Ready, many(100));
    let ready = queue.peek(&ask).await.unwrap().jobs;
    assert_eq!(ready[0].last_error, None, "R11: the last error of the new job");
}

/// R23: a purge of a queue that is one page of the database also removes the records of jobs
/// that an operator ended with DEL.
#[tokio::test]
async fn a_purge_removes_the_records_of_a_deleted_item() {
    let server = Server::start();
    let queue = open(&server).await;
    queue.push_one(bound()).await.unwrap();
    assert_eq!(say(&server, "DEL item_mine"), ":1\r\n");

    assert_eq!(queue.purge().await.unwrap(), 0);

    assert_eq!(keys(&server), ["relq:database", "{q}:marker"], "R23: the records");
    let again = queue.push_one(bound()).await.unwrap();
    assert!(matches!(again, Pushed::Stored(_)), "R4, R16: {again:?}");
}

/// R16: a job whose processing key is deleted frees its unique key once its lease has
/// expired.
#[tokio::test]
async fn a_deleted_processing_key_frees_its_key() {
    let server = Server::start();
    let queue = open(&server).await;
    queue.push_one(bound()).await.unwrap();
    take_all(&queue).await;
    let leased = keys(&server).into_iter().find(|key| key.starts_with("processing_"));
    let leased = leased.unwrap();
    say(&server, &format!("DEL {leased}"));
    say(&server, &format!("ZADD {{q}}:leased 1 {leased}"));

    for _ in 0..2 {
        queue.recover(many(100)).await.unwrap();
    }

    assert_sound(&queue).await;
    assert!(matches!(queue.push_one(rival()).await.unwrap(), Pushed::Stored(_)));
}

/// R16: an existing job keeps its unique key and its id in every state, also when a
/// client of the original pattern holds it.
#[tokio::test]
async fn recovery_frees_nothing_of_a_job_that_lives() {
    let server = Server::start();
    let queue = open(&server).await;
    let keeps = async |position: &str| {
        for _ in 0..3 {
            queue.recover(many(100)).await.unwrap();
        }
        let rival = queue.push_one(rival()).await.unwrap();
        assert!(matches!(rival, Pushed::Duplicate { .. }), "{position}: {rival:?}");
        assert_eq!(say(&server, "ZSCORE {q}:ids mine"), "$3\r\ninf\r\n", "{position}");
    };
    queue.push_one(bound().delay(LEASE)).await.unwrap();
    keeps("scheduled").await;
    say(&server, "ZADD {q}:later 1 mine");
    queue.recover(many(100)).await.unwrap();
    keeps("ready").await;
    let held = take_all(&queue).await.remove(0);
    keeps("leased").await;
    queue.retry(&held.receipt, LEASE, "no").await.unwrap();
    keeps("retried").await;
    say(&server, "ZADD {q}:later 1 mine");
    queue.recover(many(100)).await.unwrap();
    say(&server, "RENAME item_mine processing_mine");
    keeps("renamed").await;
}

/// R1: a time to live that a client sets on a job of relq's never ends the job while a
/// worker holds it.
#[tokio::test]
async fn a_time_to_live_of_an_entry_ends_with_the_lease() {
    let server = Server::start();
    let queue = open(&server).await;
    queue.push_one(bound()).await.unwrap();
    say(&server, "EXPIRE item_mine 1000");

    take_all(&queue).await;

    let leased = keys(&server).into_iter().find(|key| key.starts_with("processing_"));
    assert_eq!(say(&server, &format!("TTL {}", leased.unwrap())), ":-1\r\n");
}

/// R1: a time to live that a client sets on the key of a leased job never ends the job after
/// its lease has expired.
#[tokio::test]
async fn a_job_that_comes_back_has_no_time_to_live() {
    let server = Server::start();
    let queue = open(&server).await;
    // Recovery also removes the time to live of each processing key on one page of the
    // database, which is a fifth of these keys. That the page has the keys of all five jobs
    // happens once in 3,125 runs.
    lease_many(&server, &queue, 5000).await;
    let jobs = [1, 2, 3, 4, 5].map(|number: u32| {
        NewJob::new("job").id(JobId::new(format!("job-{number}")).unwrap())
    });
    queue.push(&jobs, None).await.unwrap();
    assert_eq!(take_all(&queue).await.len(), jobs.len());
    let leased = say(&server, "KEYS processing_job-*");
    for key in leased.lines().filter(|line| line.starts_with("processing_")) {
        say(&server, &format!("EXPIRE {key} 1000"));
        say(&server, &format!("ZADD {{q}}:leased 1 {key}"));
    }

    assert_eq!(queue.recover(many(100)).await.unwrap().requeued, 5);

    for number in 1..=jobs.len() {
        let item = format!("item_job-{number}");
        assert_eq!(say(&server, &format!("TTL {item}")), ":-1\r\n", "R1: {item}");
    }
}

/// R1: a time to live on a key that a client renamed and left behind never ends the
/// job.
#[tokio::test]
async fn a_time_to_live_of_a_stray_ends_with_its_adoption() {
    let server = Server::start();
    let queue = open(&server).await;
    say(&server, "SET item_5 hello EX 1000");
    say(&server, "RENAME item_5 processing_5");

    queue.recover(many(100)).await.unwrap();

    assert_eq!(say(&server, "TTL processing_5"), ":-1\r\n");
}

/// R18: a leased job never ends by a time to live that a client set.
#[tokio::test]
async fn a_time_to_live_ends_with_the_lease() {
    let server = Server::start();
    let queue = open(&server).await;
    say(&server, "SET item_5 hello EX 1000");

    take_all(&queue).await;

    let leased = keys(&server).into_iter().find(|key| key.starts_with("processing_5_"));
    assert_eq!(say(&server, &format!("TTL {}", leased.unwrap())), ":-1\r\n");
}
