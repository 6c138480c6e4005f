//! Calls on a file that another process holds locked for writing.

use std::{num::NonZeroU32, path::Path, time::Duration};

use relq_core::{
    Error, NewJob, Operator as _, QueueName, ReliableQueue as _, ReliableQueueExt as _,
    batch::{BatchId, BatchQueue as _, NewBatch},
    error::{Effect, RetryAdvice},
    operator::{InspectQueue as _, RunNow, WorkerReport},
};
use relq_sqlite::SqliteQueue;

use crate::fixture::{Folder, LONG, ask, many, open, raw};
use crate::followers::{id, named, push};

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

/// Creates a batch with this limit and so many pieces.
async fn make(
    queue: &SqliteQueue,
    name: &str,
    limit: Option<NonZeroU32>,
    pieces: usize,
) -> BatchId {
    let batch = BatchId::new(name).unwrap();
    queue.create(&NewBatch::new(batch.clone()).limit(limit)).await.unwrap();
    queue.add(&batch, &vec![NewJob::new("piece"); pieces], None).await.unwrap();
    batch
}

/// Stores jobs and batches of each kind for which neither a claim nor a recovery has
/// anything to do. The worker `w` holds all that is leased.
async fn store_what_waits(queue: &SqliteQueue, file: &Path) {
    push(queue, &[named("leader"), NewJob::new("delayed").delay(LONG)]).await;
    push(queue, &[NewJob::new("held").after(id("leader"))]).await;
    make(queue, "open", None, 0).await;
    let full = make(queue, "full", Some(many(1)), 2).await;
    let done = make(queue, "done", None, 1).await;
    let cancelled = make(queue, "cancelled", None, 1).await;
    make(queue, "purged", None, 1).await;
    let held = queue.claim(&ask("w").max(many(9))).await.unwrap();
    assert_eq!(held.len(), 5, "the leader and a piece of each batch");

    for batch in [&full, &done] {
        queue.seal(batch).await.unwrap();
    }
    let last = held.iter().find(|one| one.batch.as_ref() == Some(&done)).unwrap();
    queue.ack(&last.receipt).await.unwrap();
    queue.cancel_batch(&cancelled).await.unwrap();
    // A purge was interrupted after it had closed this batch.
    let close =
        "UPDATE batches SET state = 'cancelled', completed_at = 1, remove_at = 1
                 WHERE id = 'purged'";
    assert_eq!(raw(file).execute(close, ()).unwrap(), 1);
    queue.report_worker(&WorkerReport::new(ask("w").worker, many(1))).await.unwrap();
}

/// Stores jobs and batches of each kind in another queue of the file, where a claim, a
/// recovery and a release of the worker `idle` have something to do.
async fn store_work_elsewhere(folder: &Folder) {
    let others = QueueName::new("others").unwrap();
    let queue = SqliteQueue::open(folder.config(), others).await.unwrap();
    let idle = ask("idle");
    push(&queue, &["leased".into()]).await;
    assert_eq!(queue.claim(&idle).await.unwrap().len(), 1);
    queue.report_worker(&WorkerReport::new(idle.worker, many(1))).await.unwrap();
    push(&queue, &["ready".into(), NewJob::new("due").delay(LONG)]).await;
    for (name, pieces) in [("claimable", 1), ("half", 1), ("ended", 0), ("old", 0)] {
        make(&queue, name, None, pieces).await;
    }
    let changes = "UPDATE jobs SET at = 1 WHERE state IN ('leased', 'scheduled')
           AND queue = (SELECT queue FROM queues WHERE name = 'others');
         UPDATE batches SET state = 'cancelling' WHERE id = 'half';
         UPDATE batches SET state = 'sealed' WHERE id = 'ended';
         UPDATE batches SET state = 'done', completed_at = 1, remove_at = 1
         WHERE id = 'old'";
    raw(&folder.file()).execute_batch(changes).unwrap();
}

/// The same beside jobs and batches that these calls leave alone, and beside another queue
/// of the file, in which they have something to do (R19).
#[tokio::test]
async fn a_call_with_nothing_to_do_takes_no_lock_beside_other_jobs() {
    let folder = Folder::new();
    let queue = open(folder.config().busy_timeout(SHORT)).await.unwrap();
    store_what_waits(&queue, &folder.file()).await;
    store_work_elsewhere(&folder).await;
    let other = raw(&folder.file());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let claimed = queue.claim(&ask("idle").wait(SHORT)).await;
    assert_eq!(claimed.expect("a claim takes no lock"), []);
    let recovered = queue.recover(many(10)).await;
    let recovered = recovered.expect("a recovery takes no lock");
    assert_eq!((recovered.requeued, recovered.more), (0, false));
    let released = queue.release_worker(&ask("idle").worker).await;
    assert_eq!(released.expect("a release takes no lock").jobs, 0);
    let ran = queue.run_now(&id("leader")).await;
    assert_eq!(ran.expect("a run takes no lock"), RunNow::NotScheduled);

    // Jobs whose lease has expired, and pieces of a batch that is being cancelled, are for a
    // recovery.
    let changes = "UPDATE jobs SET at = 1 WHERE state = 'leased';
                   UPDATE batches SET state = 'cancelling', slots = NULL WHERE id = 'full';
                   COMMIT; BEGIN IMMEDIATE";
    other.execute_batch(changes).unwrap();
    let claimed = queue.claim(&ask("idle")).await;
    assert_eq!(claimed.expect("a claim leaves them to a recovery"), []);
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
