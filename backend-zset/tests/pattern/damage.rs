//! Tests of jobs whose entries another client has damaged or removed (R1, R3, R31).

use std::time::{Duration, Instant};

use relq_conformance::server::Server;
use relq_core::{
    operator::{JobState, PeekRequest, Selection, StateDetail},
    outcome::Pushed,
    *,
};
use relq_zset::ZsetQueue;

use crate::fixture::*;

/// R21: a redrive skips a dead job whose entry was deleted.
#[tokio::test]
async fn a_redrive_ends_also_where_entries_are_gone() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let mut gone = None;
    for payload in ["gone", "kept"] {
        queue.push_one(payload.into()).await.unwrap();
        let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
        queue.bury(&held.receipt, "never").await.unwrap();
        gone.get_or_insert_with(|| held.job().to_string());
    }
    server.command(&[b"HDEL", b"{q}:jobs", gone.unwrap().as_bytes()]);

    let redriven = tokio::time::timeout(LONG, queue.redrive(&Selection::All)).await;

    assert_eq!(redriven.expect("it ends").unwrap().moved, 1);
}

/// R21, R33: recovery goes on beside a foreign value in place of the reports of workers,
/// on which no job depends. If a foreign value stops one of its steps, its error says that
/// a person must help, although the other steps were done. Otherwise a worker would repeat
/// the call for ever.
#[tokio::test]
async fn a_step_of_recovery_that_is_always_refused_is_told() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    queue.push_one("x".into()).await.unwrap();
    server.command(&[b"SET", b"{q}:alive", b"foreign"]);
    queue.recover(many(10)).await.unwrap();

    server.command(&[b"SET", b"{q}:kept", b"foreign"]);
    let error = queue.recover(many(10)).await.unwrap_err();

    assert!(error.needs_help(), "{}", error.full_message());
}

/// R3: an urgent job is claimed although another client has removed the entries of the
/// jobs before it.
#[tokio::test]
async fn ids_without_entries_block_no_job() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    for id in ["gone-1", "gone-2", "behind"] {
        let mut job = NewJob::new("x").id(JobId::new(id).unwrap());
        job.priority = Priority::HIGHEST;
        queue.push_one(job).await.unwrap();
    }
    server.command(&[b"HDEL", b"{q}:jobs", b"gone-1", b"gone-2"]);

    let claimed = queue.claim_one(&ask("w")).await.unwrap();

    assert_eq!(claimed.expect("a job is ready").job().as_str(), "behind");
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.leased), (0, 1));
}

/// R1, R3: an entry that another client damaged while its job was leased is not dropped
/// when the lease ends. It becomes a dead letter, and is not delivered as a new job even
/// if it does not begin with relq's bytes any more.
#[tokio::test]
async fn a_leased_entry_that_was_damaged_is_not_dropped() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let short =
        ClaimRequest::new(WorkerId::new("w").unwrap(), Duration::from_millis(1));
    for damaged in [DAMAGED, b"without the first bytes"] {
        queue.push_one("x".into()).await.unwrap();
        queue.claim_one(&short).await.unwrap().unwrap();
        let held = server.command(&[b"HKEYS", b"{q}:held"]);
        let lease = String::from_utf8(held).unwrap().lines().nth(2).unwrap().to_owned();
        server.command(&[b"HSET", b"{q}:held", lease.as_bytes(), damaged]);
        let leased = PeekRequest::new(JobState::Leased, many(10));
        let leased = queue.peek(&leased).await.unwrap().jobs;
        assert!(leased[0].unreadable.is_some(), "{leased:?}");

        let start = Instant::now();
        let mut recovered = queue.recover(many(10)).await.unwrap();
        while (recovered.requeued, recovered.buried) == (0, 0) {
            assert!(start.elapsed() < LONG, "the lease does not end");
            recovered = queue.recover(many(10)).await.unwrap();
        }

        assert_eq!((recovered.requeued, recovered.buried), (0, 1));
        assert!(queue.claim_one(&ask("w")).await.unwrap().is_none());
        assert_eq!(buried(&queue).await, [damaged]);
        assert_sound(&queue).await;
        queue.purge().await.unwrap();
    }
}

/// R3: a scheduled entry that another client has damaged becomes a dead letter when it is
/// due, with the bytes that are left and a reason.
#[tokio::test]
async fn a_scheduled_entry_that_was_damaged_is_not_dropped() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let soon = NewJob::new("x").delay(Duration::from_millis(1));
    queue.push_one(soon).await.unwrap();
    let ids = server.command(&[b"HKEYS", b"{q}:jobs"]);
    let id = String::from_utf8(ids).unwrap().lines().nth(2).unwrap().to_owned();
    server.command(&[b"HSET", b"{q}:jobs", id.as_bytes(), DAMAGED]);

    let start = Instant::now();
    while queue.stats().await.unwrap().scheduled > 0 {
        queue.recover(many(10)).await.unwrap();
        assert!(start.elapsed() < LONG, "R14: the job is not due");
    }

    assert_eq!(buried(&queue).await, [DAMAGED], "R3: the bytes of the dead letter");
    let page = queue.peek(&PeekRequest::new(JobState::Dead, many(10))).await.unwrap();
    let StateDetail::Dead { reason, .. } = &page.jobs[0].detail else {
        panic!("R3: the job is dead: {:?}", page.jobs[0]);
    };
    assert_eq!(reason, "it cannot be read: its entry cannot be read", "R3: the reason");
    assert!(queue.claim_one(&ask("w")).await.unwrap().is_none());
    assert_sound(&queue).await;
}

/// R4: an id is free once the damaged job that had it is gone, also if the job that a client
/// pushed with it got another one meanwhile. Otherwise all later pushes of the id would count
/// as duplicates.
#[tokio::test]
async fn the_id_of_a_damaged_job_that_is_gone_is_free() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    let made = queue.push_one("first".into()).await.unwrap().job().clone();
    let second = || NewJob::new("second").id(made.clone());
    let pushed = queue.push_one(second()).await.unwrap();
    assert!(matches!(pushed, Pushed::Stored(_)), "{pushed:?}");
    for _ in 0..2 {
        let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
        queue.bury(&held.receipt, "never").await.unwrap();
        server.command(&[b"HSET", b"{q}:jobs", made.as_str().as_bytes(), DAMAGED]);
    }

    server.command(&[b"HDEL", b"{q}:jobs", made.as_str().as_bytes()]);
    let again = queue.push_one(second()).await.unwrap();

    assert!(matches!(again, Pushed::Stored(_)), "{again:?}");
}

/// R23: an audit tells of a lease without an entry, and of an entry without a lease.
#[tokio::test]
async fn an_audit_tells_of_half_a_leased_job() {
    for (command, key) in [("HDEL", "{q}:held"), ("ZREM", "{q}:leased")] {
        let server = Server::start();
        let queue = open(&server, "q").await;
        queue.push_one("x".into()).await.unwrap();
        queue.claim_one(&ask("w")).await.unwrap().unwrap();
        let held = server.command(&[b"HKEYS", b"{q}:held"]);
        let lease = String::from_utf8(held).unwrap().lines().nth(2).unwrap().to_owned();

        server.command(&[command.as_bytes(), key.as_bytes(), lease.as_bytes()]);

        let problems = queue.audit().await.unwrap().problems;
        let expected = format!("lease or entry {lease} without the other");
        assert_eq!(problems, [expected], "R23: after {command} of {key}");
    }
}

/// R1, R3: nor is it dropped when its worker retries it, postpones it, gives it back or
/// stops.
#[tokio::test]
async fn a_damaged_entry_is_not_dropped_by_its_worker() {
    let after = Duration::ZERO;
    let dispositions = [
        Some(Disposition::Retry { after, error: "again".into() }),
        Some(Disposition::Postpone { after }),
        Some(Disposition::GiveBack),
        None,
    ];
    let server = Server::start();
    let queue = open(&server, "q").await;
    for disposition in dispositions {
        queue.push_one("x".into()).await.unwrap();
        let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
        let lease = server.command(&[b"HKEYS", b"{q}:held"]);
        let lease =
            String::from_utf8(lease).unwrap().lines().nth(2).unwrap().to_owned();
        server.command(&[b"HSET", b"{q}:held", lease.as_bytes(), DAMAGED]);

        if let Some(disposition) = &disposition {
            let settled = queue.settle_one(&held.receipt, disposition.clone()).await;
            assert_eq!(settled.unwrap(), outcome::Settled::Applied);
        } else {
            queue.release_worker(&ask("w").worker).await.unwrap();
        }

        assert_eq!(buried(&queue).await, [DAMAGED], "{disposition:?}");
        let stats = queue.stats().await.unwrap();
        assert_eq!((stats.ready, stats.scheduled, stats.leased), (0, 0, 0));
        assert_sound(&queue).await;
        queue.purge().await.unwrap();
    }
}

/// R3: of two damaged jobs with the same id, each keeps its own bytes.
#[tokio::test]
async fn a_damaged_entry_replaces_no_other() {
    let server = Server::start();
    let queue = open(&server, "q").await;
    // A queue refuses keys without a marker, which this call writes (R25).
    queue.resume().await.unwrap();
    let lease = b"w/1/n-10001p/same";
    let entries = [DAMAGED, b"\xf5RQ\x01second"];
    for entry in entries {
        server.command(&[b"HSET", b"{q}:held", lease, entry]);
        server.command(&[b"ZADD", b"{q}:leased", b"9e12", lease]);
        queue.release_worker(&ask("w").worker).await.unwrap();
    }

    assert_eq!(buried(&queue).await, entries);
    assert_sound(&queue).await;
}

/// An entry that another client has damaged.
const DAMAGED: &[u8] = b"\xf5RQ\x01broken";

/// Returns the payloads of the dead letters.
async fn buried(queue: &ZsetQueue) -> Vec<Bytes> {
    let page = queue.peek(&PeekRequest::new(JobState::Dead, many(10))).await.unwrap();
    page.jobs.into_iter().map(|job| job.payload).collect()
}

/// R31: a job whose entry another client has damaged or removed is listed and found by its
/// id, in its state and with the bytes that are left. The other jobs are shown as always.
#[tokio::test]
async fn a_damaged_entry_is_shown() {
    let (broken, unmarked): (&[u8], &[u8]) = (DAMAGED, b"without the first bytes");
    for damage in [Some(broken), Some(unmarked), None] {
        let server = Server::start();
        let queue = open(&server, "q").await;
        for state in STATES {
            store_pair(&queue, state).await;
            damage_first(&server, state, damage);
            are_shown(&queue, state, damage.unwrap_or_default()).await;
        }
    }
}

/// The states whose jobs have an entry in a hash: those of this pattern are ready jobs of
/// another priority than the normal one.
const STATES: [JobState; 4] =
    [JobState::Scheduled, JobState::Ready, JobState::Dead, JobState::Leased];

fn name_in(state: JobState, number: u32) -> JobId {
    JobId::new(format!("{}-{number}", state.as_str())).unwrap()
}

/// Stores two jobs in a state, whose ids say which one it is.
async fn store_pair(queue: &ZsetQueue, state: JobState) {
    for number in [1, 2] {
        let mut job = NewJob::new("payload").id(name_in(state, number));
        job.priority = Priority::LOWEST;
        if state == JobState::Scheduled {
            job.delay = LEASE;
        }
        if matches!(state, JobState::Dead | JobState::Leased) {
            job.priority = Priority::HIGHEST;
        }
        queue.push_one(job).await.unwrap();
        if matches!(state, JobState::Dead | JobState::Leased) {
            let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
            if state == JobState::Dead {
                queue.bury(&held.receipt, "never").await.unwrap();
            }
        }
    }
}

/// Replaces the entry of the first job of a state, or removes it.
fn damage_first(server: &Server, state: JobState, damage: Option<&[u8]>) {
    let id = name_in(state, 1);
    let (key, field) = match state {
        JobState::Leased => {
            let fields = server.command(&[b"HKEYS", b"{q}:held"]);
            let fields = String::from_utf8_lossy(&fields).into_owned();
            let lease = fields.lines().find(|line| line.ends_with(id.as_str()));
            ("{q}:held", lease.unwrap().to_owned())
        }
        _ => ("{q}:jobs", id.to_string()),
    };
    let (key, field) = (key.as_bytes(), field.as_bytes());
    match damage {
        Some(bytes) => server.command(&[b"HSET", key, field, bytes]),
        None => server.command(&[b"HDEL", key, field]),
    };
}

/// Asserts that both jobs of a state are listed in both orders, the first one as one that
/// cannot be read, and that it is found by its id.
async fn are_shown(queue: &ZsetQueue, state: JobState, left: &[u8]) {
    let ask = PeekRequest::new(state, many(10));
    for ask in [ask.clone(), ask.clone().newest_first(), ask.outline()] {
        let page = queue.peek(&ask).await.unwrap();
        let mut ids: Vec<_> = page.jobs.iter().map(|job| job.id.clone()).collect();
        ids.sort();
        let wanted = [1, 2].map(|number| Some(name_in(state, number)));
        assert_eq!(ids, wanted, "{ask:?}");
        if ask.parts == operator::JobParts::Whole {
            let damaged = page.jobs.iter().filter(|job| job.unreadable.is_some());
            let damaged: Vec<_> = damaged.map(|job| job.id.clone()).collect();
            assert_eq!(damaged, wanted[..1], "{ask:?}");
        }
    }
    let inspect = queue.inspect_queue().unwrap();
    let found = inspect.job(&name_in(state, 1)).await.unwrap();
    // Without its entry, a leased job looks like one that has just ended.
    if state == JobState::Leased && left.is_empty() {
        return;
    }
    let operator::JobLookup::Stored(record) = found else {
        panic!("{state:?}: {found:?}")
    };
    assert_eq!(record.job.id, Some(name_in(state, 1)));
    assert_eq!(record.job.detail.state(), state);
    assert_eq!(&record.job.payload[..], left);
    assert!(record.job.unreadable.is_some(), "{state:?}: {record:?}");
    let other = inspect.job(&name_in(state, 2)).await.unwrap();
    let operator::JobLookup::Stored(record) = other else {
        panic!("{state:?}: {other:?}")
    };
    assert_eq!(record.job.payload, "payload");
    assert_eq!(record.job.unreadable, None);
}
