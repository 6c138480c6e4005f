//! A queue beside another one of the same file, which has work of every kind. Processes that
//! died have left some of it.

use std::time::Duration;

use relq_core::{
    NewJob, QueueName, ReliableQueue as _, ReliableQueueExt as _,
    batch::{BatchId, BatchQueue as _, NewBatch, OnComplete},
    operator::WorkerReport,
};
use relq_sqlite::SqliteQueue;
use rusqlite::{Connection, types::Value};

use crate::fixture::{Folder, LONG, ask, many, open, raw};
use crate::followers::{id, named, push};

const SHORT: Duration = Duration::from_millis(60);

/// The remains of processes that died: an expired lease, a due job, a follower to cancel, a
/// cancelled batch with its pieces, a batch to complete and one to remove.
const LEFT: &str = "
    UPDATE jobs SET at = 1 WHERE state = 'leased' OR id = 'due';
    UPDATE followers SET orphaned = 1;
    UPDATE batches SET state = 'cancelling' WHERE id = 'half';
    UPDATE batches SET state = 'sealed', sealed_at = 1 WHERE id = 'to-complete';
    UPDATE batches SET remove_at = 1 WHERE id = 'to-remove';";

/// Gives the queue under test, the first of the file, work for a recovery: a due job, and
/// batches to remove.
const WORK: &str = "
    UPDATE jobs SET at = 1 WHERE state = 'scheduled' AND queue = 1;
    UPDATE batches SET remove_at = 1 WHERE completed_at IS NOT NULL AND queue = 1;";

/// The rows of a queue, by table.
const ROWS: [(&str, &str); 11] = [
    ("queues", "queue = ?1"),
    ("jobs", "queue = ?1"),
    ("bodies", "job IN (SELECT job FROM jobs WHERE queue = ?1)"),
    ("batches", "queue = ?1"),
    ("completions", "batch IN (SELECT batch FROM batches WHERE queue = ?1)"),
    ("followers", "queue = ?1"),
    ("results", "queue = ?1"),
    ("ended_ids", "queue = ?1"),
    ("push_calls", "queue = ?1"),
    ("cancelled_leases", "queue = ?1"),
    ("relq_workers", "queue = ?1"),
];

fn batch(name: &str) -> BatchId {
    BatchId::new(name).unwrap()
}

/// Opens the queue "busy" of the folder's file, and gives it work of every kind. The worker
/// `w` holds one of its jobs.
async fn busy(folder: &Folder) -> SqliteQueue {
    let name = QueueName::new("busy").unwrap();
    let queue = SqliteQueue::open(folder.config(), name).await.unwrap();
    queue.report_worker(&WorkerReport::new(ask("w").worker, many(1))).await.unwrap();
    push(&queue, &[named("leased").keep_result(LONG)]).await;
    assert_eq!(queue.claim(&ask("w")).await.unwrap().len(), 1);
    let leader = named("leader").keep_result(LONG);
    push(&queue, &[leader, named("ready"), named("due").delay(LONG)]).await;
    push(&queue, &[named("follower").after(id("leader"))]).await;
    for name in ["half", "open", "to-complete", "to-remove"] {
        let completion = OnComplete::new("complete".into());
        let new = NewBatch::new(batch(name)).on_complete(completion);
        queue.create(&new).await.unwrap();
    }
    for name in ["half", "open"] {
        queue.add(&batch(name), &["1".into(), "2".into()], None).await.unwrap();
    }
    queue.seal(&batch("to-remove")).await.unwrap();
    raw(&folder.file()).execute_batch(LEFT).unwrap();
    queue
}

/// All rows of the queue "busy".
fn rows(conn: &Connection) -> Vec<(&'static str, Vec<Value>)> {
    let find = "SELECT queue FROM queues WHERE name = 'busy'";
    let key: i64 = conn.query_row(find, [], |row| row.get(0)).unwrap();
    let mut rows = Vec::new();
    for (table, condition) in ROWS {
        let sql = format!("SELECT * FROM {table} WHERE {condition}");
        let mut statement = conn.prepare(&sql).unwrap();
        let columns = statement.column_count();
        let read = statement.query_map([key], |row| {
            (0..columns)
                .map(|column| row.get(column))
                .collect::<Result<Vec<Value>, _>>()
        });
        rows.extend(read.unwrap().map(|row| (table, row.unwrap())));
    }
    rows
}

/// R19, R21: work of another queue is no reason to take the lock of the file. A call that
/// finds nothing to do in its own queue does not wait for a process that writes.
#[tokio::test]
async fn work_of_another_queue_needs_no_lock() {
    let folder = Folder::new();
    let queue = open(folder.config().busy_timeout(SHORT)).await.unwrap();
    let _busy = busy(&folder).await;
    let other = raw(&folder.file());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    assert_eq!(queue.claim(&ask("w")).await.unwrap(), []);
    let recovered = queue.recover(many(10)).await.unwrap();
    assert_eq!((recovered.more, recovered.next_in), (false, None), "R9");
    assert_eq!(queue.release_worker(&ask("w").worker).await.unwrap().jobs, 0);
}

/// R19: calls that do the work of their queue leave that of another one to its own calls.
#[tokio::test]
async fn work_of_another_queue_is_left_to_it() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let _busy = busy(&folder).await;
    let conn = raw(&folder.file());
    let before = rows(&conn);
    assert!(before.len() > ROWS.len(), "{before:?}");

    for name in ["half", "open"] {
        queue.create(&NewBatch::new(batch(name))).await.unwrap();
        queue.add(&batch(name), &["1".into()], None).await.unwrap();
    }
    queue.cancel_batch(&batch("half")).await.unwrap();
    assert_eq!(rows(&conn), before, "after the cancel of a batch");
    push(&queue, &[named("leader"), NewJob::new("leased")]).await;
    for held in &queue.claim(&ask("w").max(many(3))).await.unwrap() {
        queue.ack(&held.receipt).await.unwrap();
    }
    queue.seal(&batch("open")).await.unwrap();
    assert_eq!(rows(&conn), before, "after the end of a batch");
    push(&queue, &[NewJob::new("due").delay(LONG)]).await;
    conn.execute_batch(WORK).unwrap();
    let recovered = queue.recover(many(10)).await.unwrap();
    assert_eq!((recovered.promoted, recovered.more), (1, false), "R9");
    assert_eq!(rows(&conn), before, "after a recovery");
}
