//! Tests of group commit when a statement in the group's transaction fails, for example
//! because the disk is full.

use std::{
    num::NonZeroU32,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use relq_core::{
    ClaimRequest, Disposition, NewJob, QueueName, Settlement, WorkerId,
    capabilities::ClaimBytes,
    error::{Effect, Operation},
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
use crate::wake::{Notifier, Wakes};

fn group_commit_on(conn: Connection) -> GroupCommit {
    let (steps, name) = (Steps::default(), QueueName::new("q").unwrap());
    let queue = statements::queue_key(&conn, &steps, &name).unwrap();
    let environment = SqliteConfig::memory().environment;
    GroupCommit { conn, queue, environment, notifier: Notifier::alone(), steps }
}

fn group_commit() -> GroupCommit {
    group_commit_on(connection::open(None, &SqliteConfig::memory()).unwrap())
}

/// Limits the file to its present size plus `pages` pages, to simulate a full disk.
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
    let ask = ClaimRequest::new(worker, lease).max(NonZeroU32::MIN);
    Claim { ask, most: 1, bytes: ClaimBytes::default() }
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

/// R5, R21: several calls of a group fail. Each gets its own failure, and the others
/// succeed, whichever of them come first. A group of which all calls fail leaves nothing.
#[test]
fn several_failed_calls_leave_nothing() {
    // Which of four calls succeed.
    for succeed in [
        [true, false, true, false],
        [false, true, false, true],
        [false, false, false, true],
        [true, false, false, false],
        [false, false, false, false],
    ] {
        let group_commit = group_commit();
        let (mut calls, mut pushed, mut failed) = (Vec::new(), Vec::new(), Vec::new());
        for succeeds in succeed {
            if succeeds {
                let (call, reply) = request(push_of(10));
                calls.push(call);
                pushed.push(reply);
            } else {
                let (call, reply) = request(FailsAfterWriting);
                calls.push(call);
                failed.push(reply);
            }
        }
        let ready = pushed.len() as u64;

        assert!(group_commit.serve(calls).is_empty());

        pushed.into_iter().for_each(|reply| drop(answer(reply).unwrap()));
        for reply in failed {
            let error = answer(reply).unwrap_err().at(Operation::Push);
            assert!(error.to_string().contains("it was meant to fail"), "{error}");
        }
        assert!(group_commit.conn.is_autocommit());
        assert_eq!(serve(&group_commit, Count).unwrap().ready, ready, "{succeed:?}");
    }
}

/// R13: a failed call that reserved turns for its group does not take them from the order
/// of the jobs behind it.
#[test]
fn jobs_keep_their_order_around_a_failed_call() {
    let group_commit = group_commit();
    let mut replies = Vec::new();
    let mut push = |name: &'static str| {
        let (call, reply) =
            request(Push { jobs: vec![NewJob::new(name)], token: None });
        replies.push(reply);
        call
    };
    let groups = [["a", "b", "c"], ["d", "e", "f"]].map(|names| names.map(&mut push));
    for [first, second, third] in groups {
        let (failing, failing_reply) = request(FailsAfterWriting);
        group_commit.serve(vec![failing, first, second, third]);
        answer(failing_reply).unwrap_err();
    }

    replies.into_iter().for_each(|reply| drop(answer(reply).unwrap()));
    for name in ["a", "b", "c", "d", "e", "f"] {
        let claimed = serve(&group_commit, claim_one()).unwrap();
        assert_eq!(claimed.deliveries[0].payload, name);
    }
}

/// R21: however many calls of a group fail, each call of the group runs a few times only.
#[test]
fn the_work_of_a_group_grows_with_its_calls_alone() {
    let statements = |pairs: usize| {
        let mut group_commit = group_commit();
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        group_commit.steps = Steps::watched_by(Arc::new(move |side, _| {
            count.fetch_add(usize::from(side == Side::Before), Ordering::SeqCst);
            Ok(())
        }));
        let (mut calls, mut replies) = (Vec::new(), Vec::new());
        for _ in 0..pairs {
            let (push, pushed) = request(push_of(10));
            let (failing, failed) = request(FailsAfterWriting);
            calls.extend([push, failing]);
            replies.push((pushed, failed));
        }
        group_commit.serve(calls);
        for (pushed, failed) in replies {
            answer(pushed).unwrap();
            answer(failed).unwrap_err();
        }
        seen.load(Ordering::SeqCst)
    };

    let (few, many) = (statements(10), statements(100));

    assert!(many < 12 * few, "{many} statements for ten times the calls, {few} before");
}

/// SQLite copies the values that a statement gets. So one statement stores the bodies of
/// small jobs together, and those of large jobs one by one.
#[test]
fn large_bodies_are_stored_one_by_one() {
    for (bytes, statements) in [(10, 1), (ClaimRequest::MAX_BYTES, 4)] {
        let mut group_commit = group_commit();
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        group_commit.steps = Steps::watched_by(Arc::new(move |side, sql| {
            if side == Side::Before && sql.contains("INSERT INTO bodies") {
                count.fetch_add(1, Ordering::SeqCst);
            }
            Ok(())
        }));
        let jobs = (0..4).map(|_| NewJob::new(vec![7; bytes])).collect();

        serve(&group_commit, Push { jobs, token: None }).unwrap();

        assert_eq!(seen.load(Ordering::SeqCst), statements, "{bytes} bytes");
    }
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

/// R22: the thread does not run a call whose caller was dropped before it began.
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
    let wakes = Wakes::default();
    pending.run(&group_commit.store(&wakes, 1)).unwrap();
    group_commit.conn.execute_batch("COMMIT").unwrap();
    assert_eq!(serve(&group_commit, Count).unwrap().leased, 1);

    drop(reply);
    let rest = pending.finish(Ok(()));
    group_commit.serve(rest.into_iter().collect());

    let stats = serve(&group_commit, Count).unwrap();
    assert_eq!((stats.ready, stats.leased), (1, 0));
}

/// If the statement that ends a read transaction fails, the call still returns its
/// result, and the connection has no open transaction.
#[test]
fn a_look_that_cannot_be_ended_leaves_no_transaction_open() {
    let mut group_commit = group_commit();
    serve(&group_commit, push_of(1)).unwrap();
    group_commit.steps = Steps::watched_by(failing_once("COMMIT", ffi::SQLITE_IOERR));

    let claimed = serve(&group_commit, claim_one()).unwrap();

    assert_eq!(claimed.deliveries.len(), 1);
    assert!(group_commit.conn.is_autocommit());
}

/// A hook that makes the first execution of a statement fail with a result code.
fn failing_once(statement: &'static str, code: i32) -> AtStep {
    let failed = AtomicBool::new(false);
    Arc::new(move |side, sql| {
        let fails = side == Side::Before && sql == statement;
        if fails && !failed.swap(true, Ordering::SeqCst) { Err(code) } else { Ok(()) }
    })
}

/// The SQLite errors that the tests inject: a lock held by another connection, a full
/// disk, a failed write, a failed sync, a damaged file, a read-only file, and too
/// little memory.
const CODES: [i32; 7] = [
    ffi::SQLITE_BUSY,
    ffi::SQLITE_FULL,
    ffi::SQLITE_IOERR_WRITE,
    ffi::SQLITE_IOERR_FSYNC,
    ffi::SQLITE_CORRUPT,
    ffi::SQLITE_READONLY,
    ffi::SQLITE_NOMEM,
];

/// Which statement of a group's transaction fails, and how.
#[derive(Debug, Clone, Copy)]
struct Failing {
    /// The number of the statement in the transaction, counted from 0.
    number: usize,
    code: i32,
    /// Whether all later statements fail too. ROLLBACK statements always succeed.
    is_lasting: bool,
    /// `Before`: the statement fails and is not executed. `After`: the statement is
    /// executed, and then reported as failed; only COMMIT statements are counted.
    side: Side,
}

impl Failing {
    /// Returns a hook that makes the chosen statement fail, and the counter of the
    /// statements that the hook has been called for.
    fn hook(self) -> (AtStep, Arc<AtomicUsize>) {
        let seen = Arc::new(AtomicUsize::new(0));
        let count = Arc::clone(&seen);
        let Self { number, code, is_lasting, side } = self;
        let watch: AtStep = Arc::new(move |at_side, sql| {
            let is_other = side == Side::After && sql != "COMMIT";
            if at_side != side || is_other || sql.starts_with("ROLLBACK") {
                return Ok(());
            }
            let at = count.fetch_add(1, Ordering::SeqCst);
            let fails = at == number || is_lasting && at > number;
            if fails { Err(code) } else { Ok(()) }
        });
        (watch, seen)
    }
}

/// Asserts that a call's result is true. Ok is true only if the call took effect. An
/// error that says "not done" is true only if the call did not take effect.
fn assert_true<T>(answer: Result<T, Failure>, took_effect: bool, what: &str) {
    let effect = match answer {
        Ok(_) => Effect::Yes,
        Err(failure) => failure.at(Operation::Push).effect(),
    };
    let is_true = match effect {
        Effect::Yes => took_effect,
        Effect::No => !took_effect,
        Effect::Maybe => true,
    };
    assert!(is_true, "{what}: the answer says {effect:?}, and it is {took_effect}");
}

/// R5, R21: two pushes and a settlement share a transaction, and one of its statements
/// fails. The test tries every statement with every result code, failing once or from
/// then on. Each caller gets a true result, and no transaction stays open.
#[test]
fn each_call_of_a_group_gets_its_own_result() {
    for is_lasting in [false, true] {
        for code in CODES {
            let failing =
                |number| Failing { number, code, is_lasting, side: Side::Before };
            let fired = (0..).take_while(|number| group_with(failing(*number))).count();
            assert!(fired > 5, "the group has several statements");
        }
    }
}

/// R21: a COMMIT may take effect and then report an I/O error. The jobs are there, so the
/// waiting claims are woken.
#[test]
fn a_commit_that_may_have_happened_wakes_claims() {
    let mut group_commit = group_commit();
    let claims = group_commit.notifier.listen();
    let failing = Failing {
        number: 0,
        code: ffi::SQLITE_IOERR_FSYNC,
        is_lasting: false,
        side: Side::After,
    };
    group_commit.steps = Steps::watched_by(failing.hook().0);

    let failure = serve(&group_commit, push_of(10)).unwrap_err();

    assert_eq!(failure.at(Operation::Push).effect(), Effect::Maybe);
    assert!(claims.has_changed().unwrap(), "R21: no waiting claim is woken");
    assert_eq!(serve(&group_commit, Count).unwrap().ready, 1);
}

/// R21: a COMMIT that is executed and then reports an I/O error gives each caller a
/// result that says that the call may have happened.
#[test]
fn each_call_of_a_group_knows_that_its_commit_is_uncertain() {
    for code in [ffi::SQLITE_IOERR_WRITE, ffi::SQLITE_IOERR_FSYNC] {
        let (number, is_lasting) = (0, false);
        assert!(group_with(Failing { number, code, is_lasting, side: Side::After }));
    }
}

/// Runs a group of calls in which the given statement fails, and checks the results.
/// Returns false if the group has fewer statements, so that none failed.
fn group_with(failing: Failing) -> bool {
    let mut group_commit = group_commit();
    serve(&group_commit, push_of(1)).unwrap();
    let claimed = serve(&group_commit, claim_one()).unwrap();
    let receipt = claimed.deliveries[0].receipt.clone();
    let done = vec![Settlement::new(receipt, Disposition::Done)];
    let (one, one_reply) = request(push_of(10));
    let (settle, settle_reply) = request(Settle { done });
    let jobs = vec![NewJob::new("first"), NewJob::new("second")];
    let (two, two_reply) = request(Push { jobs, token: None });
    let (watch, seen) = failing.hook();
    group_commit.steps = Steps::watched_by(watch);

    group_commit.serve(vec![one, settle, two]);

    group_commit.steps = Steps::default();
    assert!(group_commit.conn.is_autocommit());
    let stats = serve(&group_commit, Count).unwrap();
    let what = format!("{failing:?}");
    assert_true(answer(one_reply), stats.ready % 2 == 1, &what);
    assert_true(answer(two_reply), stats.ready >= 2, &what);
    assert_true(answer(settle_reply), stats.finished == 1, &what);
    seen.load(Ordering::SeqCst) > failing.number
}
