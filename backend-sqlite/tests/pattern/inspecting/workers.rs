//! Tests of the table of workers.

use std::{collections::BTreeSet, time::Duration};

use relq_core::{
    Error, Operator as _, ReliableQueue as _, WorkerId,
    operator::{InspectQueue as _, WorkerReport, WorkerView},
};
use relq_sqlite::SqliteQueue;

use crate::fixture::{Folder, many, open, raw};

fn worker(name: &str) -> WorkerId {
    WorkerId::new(name).unwrap()
}

async fn report(queue: &SqliteQueue, name: &str, slots: u32) {
    let report = WorkerReport::new(worker(name), many(slots));
    queue.report_worker(&report).await.unwrap();
}

async fn listed(queue: &SqliteQueue) -> Vec<WorkerView> {
    queue.workers(None, many(100)).await.unwrap().workers
}

fn rows(folder: &Folder) -> u32 {
    let count = "SELECT count(*) FROM relq_workers";
    raw(&folder.file()).query_row(count, [], |row| row.get(0)).unwrap()
}

/// Lets a worker's last report be older than a minute.
fn let_it_end(folder: &Folder, name: &str) {
    let update = "UPDATE relq_workers SET since = since - 90000, until = until - 90000
                  WHERE worker = ?1";
    assert_eq!(raw(&folder.file()).execute(update, [name]).unwrap(), 1);
}

/// R33: a report renews the end, and keeps the beginning.
#[tokio::test]
async fn a_report_keeps_the_first_time() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    report(&queue, "w", 2).await;
    let update = "UPDATE relq_workers SET since = since - 30000, until = until - 30000";
    assert_eq!(raw(&folder.file()).execute(update, []).unwrap(), 1);
    let before = listed(&queue).await.remove(0);

    report(&queue, "w", 3).await;

    let now = listed(&queue).await.remove(0);
    assert_eq!((now.since, now.slots), (before.since, many(3)));
    let renewed = now.until.since(before.until);
    assert!(renewed >= Duration::from_secs(30), "{renewed:?}");
    assert_eq!(rows(&folder), 1);
}

/// R33: a worker that died is not listed, and `recover` removes its row. If it reports
/// again before that, its time begins anew.
#[tokio::test]
async fn a_worker_that_died_is_forgotten() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    report(&queue, "lives", 1).await;
    report(&queue, "died", 1).await;
    let first = listed(&queue).await.remove(0).since;
    let_it_end(&folder, "died");
    assert_eq!(listed(&queue).await.len(), 1);

    report(&queue, "died", 1).await;
    let back = listed(&queue).await.remove(0);
    assert_eq!(back.worker, worker("died"));
    assert!(back.since >= first, "{back:?}");
    let_it_end(&folder, "died");
    queue.recover(many(10)).await.unwrap();

    assert_eq!(rows(&folder), 1);
    assert_eq!(listed(&queue).await[0].worker, worker("lives"));
}

/// R24, R33: a release removes the row of an idle worker, and of no other one. A worker
/// that is not known needs no lock.
#[tokio::test]
async fn a_released_worker_is_not_listed() {
    let folder = Folder::new();
    let config = folder.config().busy_timeout(Duration::from_millis(20));
    let queue = open(config).await.unwrap();
    report(&queue, "w", 1).await;
    report(&queue, "other", 1).await;

    let released = queue.release_worker(&worker("w")).await.unwrap();

    assert_eq!(released.jobs, 0);
    assert_eq!(listed(&queue).await[0].worker, worker("other"));
    let held = raw(&folder.file());
    held.execute_batch("BEGIN IMMEDIATE").unwrap();
    queue.release_worker(&worker("w")).await.unwrap();
    let refused = queue.release_worker(&worker("other")).await.unwrap_err();
    assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
    assert_eq!(listed(&queue).await.len(), 1);
}

/// R21, R33: rows of workers that died make pages empty, and end no listing.
#[tokio::test]
async fn dead_workers_hide_no_other() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    report(&queue, "m", 1).await;
    let insert = "INSERT INTO relq_workers (queue, worker, since, until, slots)
                  SELECT queue, ?1, 1, 2, 1 FROM relq_workers WHERE worker = 'm'";
    let other = raw(&folder.file());
    for number in 0..8 {
        let letter = if number % 2 == 0 { 'a' } else { 'z' };
        other.execute(insert, [format!("{letter}{number}")]).unwrap();
    }

    let (mut after, mut pages, mut seen) = (None, 0, BTreeSet::new());
    loop {
        let page = queue.workers(after.as_ref(), many(2)).await.unwrap();
        pages += 1;
        seen.extend(page.workers.into_iter().map(|one| one.worker));
        after = page.next;
        if after.is_none() {
            break;
        }
    }

    assert_eq!((seen, pages), (BTreeSet::from([worker("m")]), 5));
}

/// R33: queues of one file have their own workers, and a purge empties the list of one.
#[tokio::test]
async fn a_purge_empties_the_list_of_its_queue() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let name = relq_core::QueueName::new("other").unwrap();
    let other = SqliteQueue::open(folder.config(), name).await.unwrap();
    report(&queue, "w", 1).await;
    report(&other, "w", 2).await;

    queue.purge().await.unwrap();

    assert_eq!(listed(&queue).await, []);
    assert_eq!(listed(&other).await[0].slots, many(2));
}

/// R33: a report that fails changes nothing.
#[tokio::test]
async fn a_report_to_a_locked_file_fails() {
    let folder = Folder::new();
    let config = folder.config().busy_timeout(Duration::from_millis(20));
    let queue = open(config).await.unwrap();
    let held = raw(&folder.file());
    held.execute_batch("BEGIN IMMEDIATE").unwrap();

    let asked = WorkerReport::new(worker("w"), many(1));
    let refused = queue.report_worker(&asked).await.unwrap_err();

    assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
    assert_eq!(listed(&queue).await, []);
}
