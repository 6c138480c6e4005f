//! Calls on a file that another process holds locked for writing.

use std::time::Duration;

use relq_core::{
    Error, Operator as _, ReliableQueue as _, ReliableQueueExt as _,
    error::{Effect, RetryAdvice},
    operator::WorkerReport,
};

use crate::fixture::{Folder, ask, many, open, raw};

const SHORT: Duration = Duration::from_millis(60);

/// R21: a call on a locked file ends with a retryable error, and a retry succeeds once
/// the file is unlocked.
#[tokio::test]
async fn a_locked_file_is_unavailable_until_it_is_free() {
    let folder = Folder::new();
    let queue = open(folder.config().busy_timeout(SHORT)).await.unwrap();
    let other = raw(&folder.file());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let error = queue.push_one("hello".into()).await.unwrap_err();

    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::No);
    assert_eq!(error.retry_advice(), RetryAdvice::Safe);
    other.execute_batch("COMMIT").unwrap();
    queue.push_one("hello".into()).await.unwrap();
    assert_eq!(queue.stats().await.unwrap().ready, 1);
}

#[tokio::test]
async fn a_call_waits_for_a_lock_that_is_freed_in_time() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let other = raw(&folder.file());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let free = async {
        tokio::time::sleep(SHORT).await;
        other.execute_batch("COMMIT").unwrap();
    };
    let (pushed, ()) = tokio::join!(queue.push_one("hello".into()), free);

    pushed.unwrap();
}

/// The busy timeout is the limit of one wait. A wait for the lock does not count for the next
/// one, however long ago it was.
#[tokio::test]
async fn each_wait_for_a_lock_has_the_whole_time() {
    const TIMEOUT: Duration = Duration::from_secs(3);
    let folder = Folder::new();
    let queue = open(folder.config().busy_timeout(TIMEOUT)).await.unwrap();
    let other = raw(&folder.file());
    let push_behind_lock = async || {
        other.execute_batch("BEGIN IMMEDIATE").unwrap();
        let free = async {
            tokio::time::sleep(SHORT).await;
            other.execute_batch("COMMIT").unwrap();
        };
        let (pushed, ()) = tokio::join!(queue.push_one("hello".into()), free);
        pushed
    };

    push_behind_lock().await.unwrap();
    // The first wait is now longer ago than any wait may last.
    tokio::time::sleep(TIMEOUT + SHORT).await;
    push_behind_lock().await.unwrap();
}

/// A claim, a recovery or a release that finds nothing to do takes no write lock, also if
/// another worker holds a job and has reported. Stats and the audit never take one.
#[tokio::test]
async fn a_call_with_nothing_to_do_takes_no_lock() {
    let folder = Folder::new();
    let queue = open(folder.config().busy_timeout(SHORT)).await.unwrap();
    queue.push_one("held".into()).await.unwrap();
    assert_eq!(queue.claim(&ask("another")).await.unwrap().len(), 1);
    let report = WorkerReport::new(ask("another").worker, many(1));
    queue.report_worker(&report).await.unwrap();
    let other = raw(&folder.file());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    assert_eq!(queue.claim(&ask("w").wait(SHORT)).await.unwrap(), []);
    assert_eq!(queue.settle_and_claim(&[], &ask("w")).await.claimed.unwrap(), []);
    assert_eq!(queue.recover(many(10)).await.unwrap().requeued, 0);
    assert_eq!(queue.release_worker(&ask("w").worker).await.unwrap().jobs, 0);
    assert_eq!(queue.stats().await.unwrap().ready, 0);
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
}

/// A second handle can be opened while the file is locked, because opening writes
/// nothing.
#[tokio::test]
async fn opening_an_existing_queue_takes_no_lock() {
    let folder = Folder::new();
    drop(folder.queue().await);
    let other = raw(&folder.file());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    open(folder.config().busy_timeout(SHORT)).await.unwrap();
}
