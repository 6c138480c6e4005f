//! Groups of calls on a file that cannot grow, like on a full disk.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use relq_core::{
    ClaimRequest, Disposition, NewJob, QueueName, Settlement, WorkerId,
    error::Operation,
};
use rusqlite::{Connection, ffi};

use super::GroupCommit;
use crate::call::{Call, Reply, request};
use crate::claim::Claim;
use crate::config::SqliteConfig;
use crate::connection;
use crate::failure::Failure;
use crate::peek::Count;
use crate::push::Push;
use crate::settle::Settle;
use crate::statements;
use crate::steps::{AtStep, Side, Steps};
use crate::store::Store;
use crate::wake::Notifier;

fn group_commit_on(conn: Connection) -> GroupCommit {
    let (steps, name) = (Steps::default(), QueueName::new("q").unwrap());
    let queue = statements::queue_key(&conn, &steps, &name).unwrap();
    let environment = SqliteConfig::memory().environment;
    GroupCommit { conn, queue, environment, notifier: Notifier::alone(), steps }
}

fn group_commit() -> GroupCommit {
    group_commit_on(connection::open(None, &SqliteConfig::memory()).unwrap())
}

/// Lets the file grow by `pages` at most.
fn limit_growth(group_commit: &GroupCommit, pages: i64) {
    let count = |row: &rusqlite::Row<'_>| row.get::<_, i64>(0);
    let now = group_commit.conn.pragma_query_value(None, "page_count", count).unwrap();
    let set = group_commit.conn.pragma_update_and_check(
        None,
        "max_page_count",
        now + pages,
        count,
    );
    assert_eq!(set, Ok(now + pages));
}

fn push_of(bytes: usize) -> Push {
    Push { jobs: vec![NewJob::new(vec![7; bytes])], token: None }
}

fn claim_one() -> Claim {
    let worker = WorkerId::new("w").unwrap();
    let lease = std::time::Duration::from_secs(60);
    Claim { ask: ClaimRequest::new(worker, lease).max(NonZeroU32::MIN), most: 1 }
}

fn answer<T>(mut reply: Reply<T>) -> Result<T, Failure> {
    reply.try_recv().expect("it was answered")
}

fn serve<C: Call>(group_commit: &GroupCommit, call: C) -> Result<C::Answer, Failure> {
    let (pending, reply) = request(call);
    assert!(group_commit.serve(vec![pending]).is_empty());
    answer(reply)
}

/// R5, R21: a push that does not fit stores nothing and returns an error, and the calls
/// that share its transaction succeed.
#[test]
fn a_push_that_does_not_fit_fails_alone() {
    let group_commit = group_commit();
    limit_growth(&group_commit, 6);
    let (before, before_reply) = request(push_of(10));
    let jobs = [10, 100_000].map(|bytes| NewJob::new(vec![7; bytes])).to_vec();
    let (large, large_reply) = request(Push { jobs, token: None });
    let (after, after_reply) = request(push_of(10));

    group_commit.serve(vec![before, large, after]);

    answer(before_reply).unwrap();
    answer(after_reply).unwrap();
    let error = answer(large_reply).unwrap_err().at(Operation::Push);
    assert!(matches!(error, relq_core::Error::Full { .. }), "{error:?}");
    assert_eq!(serve(&group_commit, Count).unwrap().ready, 2);
}

/// A call that stores a job and then fails.
struct FailsAfterWriting;

impl Call for FailsAfterWriting {
    type Answer = ();

    fn run(&self, store: &Store<'_>) -> Result<(), Failure> {
        push_of(10).run(store)?;
        Err(Failure::invalid("it was meant to fail"))
    }
}

/// R5: the writes of a failed call are rolled back, and those of the other calls in its
/// transaction are not.
#[test]
fn a_failed_call_leaves_nothing() {
    let group_commit = group_commit();
    let (before, before_reply) = request(push_of(10));
    let (failing, failing_reply) = request(FailsAfterWriting);
    let (after, after_reply) = request(push_of(10));

    group_commit.serve(vec![before, failing, after]);

    answer(before_reply).unwrap();
    answer(failing_reply).unwrap_err();
    answer(after_reply).unwrap();
    assert_eq!(serve(&group_commit, Count).unwrap().ready, 2);
}

/// A file at its maximum size still accepts claims and settlements, which need no new
/// page.
#[test]
fn a_full_file_can_be_worked_empty() {
    let group_commit = group_commit();
    limit_growth(&group_commit, 40);
    while serve(&group_commit, push_of(1000)).is_ok() {}
    let full = serve(&group_commit, Count).unwrap().ready;
    assert!(full > 10, "{full}");

    for _ in 0..full {
        let claimed = serve(&group_commit, claim_one()).unwrap();
        let receipt = claimed.deliveries[0].receipt.clone();
        let done = vec![Settlement::new(receipt, Disposition::Done)];
        serve(&group_commit, Settle { done }).unwrap();
    }

    assert_eq!(serve(&group_commit, Count).unwrap().finished, full);
    serve(&group_commit, push_of(1000)).unwrap();
}

/// R22: a call whose caller was dropped before it began is not run.
#[test]
fn an_abandoned_call_is_not_begun() {
    let group_commit = group_commit();
    let (pending, reply) = request(push_of(10));
    drop(reply);

    group_commit.serve(vec![pending]);

    assert_eq!(serve(&group_commit, Count).unwrap().ready, 0);
}

/// R22: a claim whose caller was dropped leaves a follow-up call that gives its jobs
/// back.
#[test]
fn an_unheard_claim_is_given_back() {
    let group_commit = group_commit();
    serve(&group_commit, push_of(10)).unwrap();
    let (mut pending, reply) = request(claim_one());
    group_commit.conn.execute_batch("BEGIN IMMEDIATE").unwrap();
    let wakes = std::cell::Cell::new(false);
    pending.run(&group_commit.store(&wakes)).unwrap();
    group_commit.conn.execute_batch("COMMIT").unwrap();
    assert_eq!(serve(&group_commit, Count).unwrap().leased, 1);

    drop(reply);
    let rest = pending.finish(Ok(()));
    group_commit.serve(rest.into_iter().collect());

    let stats = serve(&group_commit, Count).unwrap();
    assert_eq!((stats.ready, stats.leased), (1, 0));
}

/// A read whose closing statement fails still returns its result, and the thread
/// continues to work.
#[test]
fn a_look_that_cannot_be_ended_leaves_no_transaction_open() {
    let mut group_commit = group_commit();
    serve(&group_commit, push_of(1)).unwrap();
    group_commit.steps = Steps::watched_by(failing_once("COMMIT", ffi::SQLITE_IOERR));

    let claimed = serve(&group_commit, claim_one()).unwrap();

    assert_eq!(claimed.deliveries.len(), 1);
    assert!(group_commit.conn.is_autocommit());
}

/// The first execution of that statement fails with that code.
fn failing_once(statement: &'static str, code: i32) -> AtStep {
    let failed = AtomicBool::new(false);
    Arc::new(move |side, sql| {
        let fails = side == Side::Before && sql == statement;
        if fails && !failed.swap(true, Ordering::SeqCst) { Err(code) } else { Ok(()) }
    })
}
