//! The audit finds each kind of damage that a file may have (R23).

use relq_core::{
    JobId, NewJob, Operator as _, QueueName, ReliableQueue as _, ReliableQueueExt as _,
    batch::{BatchId, BatchQueue as _, NewBatch, OnComplete},
};
use relq_sqlite::SqliteQueue;
use std::{num::NonZeroU16, time::Duration};

use crate::fixture::{Folder, ask, many, raw};

/// A part of the audit's sentence for each kind of damage, and a statement that does the
/// damage to the file of [`stored`].
const DAMAGES: &[(&str, &str)] = &[
    (
        " has no payload",
        "DELETE FROM bodies WHERE job = (SELECT job FROM jobs WHERE id = 'one')",
    ),
    (
        "a payload is kept for no job",
        "INSERT INTO bodies (job, payload) VALUES (999, x'00')",
    ),
    (" is of no queue", "UPDATE jobs SET queue = 99 WHERE id = 'two'"),
    (" attempts", "UPDATE jobs SET attempt = max_attempts + 1 WHERE id = 'leased'"),
    (
        " is ready with no attempt left",
        "UPDATE jobs SET attempt = max_attempts WHERE id = 'two'",
    ),
    (
        " has a turn that was not given out yet",
        "UPDATE jobs SET turn = (SELECT next_turn FROM queues) WHERE id = 'two'",
    ),
    (
        " jobs share turn ",
        "UPDATE jobs SET turn = (SELECT turn FROM jobs WHERE id = 'one')
         WHERE id = 'two'",
    ),
    (
        " jobs share a lease",
        "UPDATE jobs SET token = (SELECT token FROM jobs WHERE id = 'leased')
         WHERE id = 'leased, too'",
    ),
    (
        " is leased although its lease was cancelled",
        "INSERT INTO cancelled_leases (token, queue, until)
         SELECT token, queue, 9000000000000 FROM jobs WHERE id = 'leased'",
    ),
    (" is of no batch", "UPDATE jobs SET batch = 999 WHERE id = 'two'"),
    (
        " counts other pieces than it has",
        "UPDATE batches SET ready = ready + 1, total = total + 1 WHERE id = 'running'",
    ),
    (
        " has ended more pieces than it was given",
        "UPDATE batches SET total = 0 WHERE id = 'running'",
    ),
    (
        " has completed with pieces left",
        "UPDATE batches SET state = 'done', completed_at = 1 WHERE id = 'running'",
    ),
    (" has ended in part", "UPDATE batches SET completed_at = 1 WHERE id = 'running'"),
    (
        " keeps its result, and has no row for it",
        "DELETE FROM results WHERE id = 'kept'",
    ),
    (
        "a result is kept for no job",
        "INSERT INTO results (queue, id) SELECT queue, 'lost' FROM queues",
    ),
    (", which has ended", "UPDATE followers SET leader = 'nobody'"),
    (" is held, and follows no job", "DELETE FROM followers"),
    (" is kept for no held job", "UPDATE jobs SET at = 5 WHERE id = 'follows'"),
    (
        "a completion is kept for no running batch",
        "UPDATE batches SET state = 'done', completed_at = 1 WHERE id = 'told'",
    ),
];

fn id(text: &str) -> JobId {
    JobId::new(text).unwrap()
}

/// Stores jobs of each kind and two batches.
async fn stored(folder: &Folder) -> SqliteQueue {
    const HOUR: Duration = Duration::from_secs(3600);
    let queue = folder.queue().await;
    let two = NonZeroU16::new(2).unwrap();
    for name in ["leased", "leased, too"] {
        let job = NewJob::new(name).id(id(name)).max_attempts(two);
        queue.push_one(job).await.unwrap();
    }
    assert_eq!(queue.claim(&ask("worker").max(many(2))).await.unwrap().len(), 2);
    for name in ["one", "two"] {
        queue.push_one(NewJob::new(name).id(id(name))).await.unwrap();
    }
    queue.push_one(NewJob::new("kept").id(id("kept")).keep_result(HOUR)).await.unwrap();
    queue.push_one(NewJob::new("f").id(id("follows")).after(id("one"))).await.unwrap();
    let running = BatchId::new("running").unwrap();
    queue.create(&NewBatch::new(running.clone())).await.unwrap();
    queue.add(&running, &["piece".into()], None).await.unwrap();
    let told = NewBatch::new(BatchId::new("told").unwrap());
    let told = told.on_complete(OnComplete::new("completion".into()));
    queue.create(&told).await.unwrap();
    queue
}

#[tokio::test]
async fn each_kind_of_damage_is_found() {
    for (sentence, damage) in DAMAGES {
        let folder = Folder::new();
        let queue = stored(&folder).await;
        assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);

        raw(&folder.file()).execute_batch(damage).unwrap();

        let problems = queue.audit().await.unwrap().problems;
        let is_found = problems.iter().any(|problem| problem.contains(sentence));
        assert!(is_found, "{sentence}: {problems:?}");
    }
}

/// The table above has a line for each part of the audit.
#[test]
fn each_part_of_the_audit_has_its_damage() {
    let parts = include_str!("../../sql/audit.sql").split("UNION ALL");
    for (part, (sentence, _)) in parts.clone().zip(DAMAGES) {
        assert!(part.contains(sentence.trim()), "{sentence}: {part}");
    }
    assert_eq!(parts.count(), DAMAGES.len());
}

/// R19, R23: damaged headers are found by the audit of their queue, and not by that of another
/// queue of the file.
#[tokio::test]
async fn damaged_headers_are_found_in_their_queue() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let name = QueueName::new("other").unwrap();
    let other = SqliteQueue::open(folder.config(), name).await.unwrap();
    queue.push_one(NewJob::new("damaged").header("name", "value")).await.unwrap();
    other.push_one(NewJob::new("whole")).await.unwrap();

    let damage = "UPDATE bodies SET headers = x'FF' WHERE headers IS NOT NULL";
    raw(&folder.file()).execute_batch(damage).unwrap();

    let problems = queue.audit().await.unwrap().problems;
    assert!(problems.len() == 1 && problems[0].contains("headers"), "{problems:?}");
    assert_eq!(other.audit().await.unwrap().problems, [""; 0]);
}
