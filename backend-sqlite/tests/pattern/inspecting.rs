//! Tests of the statements that find a job, run it now, list jobs newest first, and list
//! workers and queues (R31 to R33).

mod faults;
mod listing;
mod queues;
mod workers;

use std::time::Duration;

use relq_core::{
    Error, JobId, NewJob, Operator as _, Priority, ReliableQueue as _,
    ReliableQueueExt as _,
    batch::{BatchId, BatchQueue as _, NewBatch},
    operator::{InspectQueue as _, JobLookup, RunNow, StateDetail},
};
use relq_sqlite::SqliteQueue;

use crate::fixture::{Folder, LONG, ask, many, raw};

fn id(name: &str) -> JobId {
    JobId::new(name).unwrap()
}

fn named(name: &str) -> NewJob {
    NewJob::new(name.to_owned()).id(id(name))
}

/// The ids of all jobs that a claim gets now, in their order.
async fn claimed(queue: &SqliteQueue) -> Vec<String> {
    let taken = queue.claim(&ask("w").max(many(100))).await.unwrap();
    taken.iter().map(|one| one.receipt.job().to_string()).collect()
}

/// Adds ready pieces to a new batch.
async fn add(queue: &SqliteQueue, batch: &str, pieces: &[NewJob]) -> BatchId {
    let batch = BatchId::new(batch).unwrap();
    queue.create(&NewBatch::new(batch.clone())).await.unwrap();
    queue.add(&batch, pieces, None).await.unwrap();
    batch
}

/// R13, R32: jobs that are already due are served before the job that is run now, and a
/// more urgent job before both.
#[tokio::test]
async fn due_jobs_come_before_a_job_that_is_run_now() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let later = |name| named(name).delay(LONG);
    let urgent = named("urgent").priority(Priority::HIGHEST);
    queue
        .push(&[later("first"), later("second"), later("chosen")], None)
        .await
        .unwrap();
    queue.push(&[named("ready"), urgent], None).await.unwrap();
    // The second job is due before the first one.
    let update = "UPDATE jobs SET at = 3 - job WHERE id IN ('first', 'second')";
    assert_eq!(raw(&folder.file()).execute(update, []).unwrap(), 2);

    assert_eq!(queue.run_now(&id("chosen")).await.unwrap(), RunNow::Ready);

    let order = ["urgent", "ready", "second", "first", "chosen"];
    assert_eq!(claimed(&queue).await, order);
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
}

/// R32: a job that is due already keeps its place among the due jobs, and is ready once.
#[tokio::test]
async fn a_due_job_that_is_run_now_keeps_its_place() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let later = |name| named(name).delay(LONG);
    queue.push(&[later("first"), later("second")], None).await.unwrap();
    raw(&folder.file()).execute("UPDATE jobs SET at = job", []).unwrap();

    assert_eq!(queue.run_now(&id("first")).await.unwrap(), RunNow::Ready);

    assert_eq!(claimed(&queue).await, ["first", "second"]);
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
}

/// B2, B7, R32: a piece of a cancelled batch that is still scheduled, as a process leaves
/// it that dies between two pages of the cancel, is dropped and counted.
#[tokio::test]
async fn a_piece_of_a_cancelled_batch_is_dropped() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let batch = add(&queue, "b", &[named("piece"), named("other")]).await;
    let held = queue.claim(&ask("w")).await.unwrap().pop().unwrap().receipt;
    queue.retry(&held, LONG, "no").await.unwrap();
    let update = "UPDATE batches SET state = 'cancelling'";
    assert_eq!(raw(&folder.file()).execute(update, []).unwrap(), 1);

    assert_eq!(queue.run_now(&id("piece")).await.unwrap(), RunNow::Ready);

    assert_eq!(claimed(&queue).await, [""; 0]);
    let status = queue.batch(&batch).await.unwrap().unwrap();
    assert!(status.state.is_completed(), "{status:?}");
    assert_eq!(queue.stats().await.unwrap().cancelled, 2);
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
}

/// R32: a call that can change nothing takes no lock, so it does not wait for a process
/// that writes.
#[tokio::test]
async fn only_a_scheduled_job_needs_the_lock() {
    let folder = Folder::new();
    let config = folder.config().busy_timeout(Duration::from_millis(20));
    let queue = crate::fixture::open(config).await.unwrap();
    let jobs = [named("lead"), named("held").after(id("lead")), named("x").delay(LONG)];
    queue.push(&jobs, None).await.unwrap();
    let other = raw(&folder.file());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    let leader = id("lead");
    let held = queue.run_now(&id("held")).await.unwrap();
    assert_eq!(held, RunNow::Following { leader });
    assert_eq!(queue.run_now(&id("lead")).await.unwrap(), RunNow::NotScheduled);
    assert!(matches!(queue.job(&id("x")).await.unwrap(), JobLookup::Stored(_)));
    let refused = queue.run_now(&id("x")).await.unwrap_err();

    assert!(matches!(refused, Error::Unavailable { .. }), "{refused:?}");
}

/// R23, R31, R32: a held job of a damaged file that follows no job is shown, and is not
/// released.
#[tokio::test]
async fn a_held_job_that_follows_no_job_is_damaged() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.push(&[named("lead"), named("f").after(id("lead"))], None).await.unwrap();
    assert_eq!(raw(&folder.file()).execute("DELETE FROM followers", []).unwrap(), 1);

    let JobLookup::Stored(found) = queue.job(&id("f")).await.unwrap() else {
        panic!("it is not found");
    };
    let refused = queue.run_now(&id("f")).await.unwrap_err();

    let is_shown = matches!(found.job.detail, StateDetail::Scheduled { .. });
    assert!(is_shown, "{:?}", found.job.detail);
    assert!(refused.full_message().contains("run an audit"), "{refused:?}");
    assert_eq!(queue.audit().await.unwrap().problems.len(), 1);
}

/// R31: a job whose body is missing is shown without it.
#[tokio::test]
async fn a_job_without_a_body_is_found() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    queue.push_one(named("job").header("name", "value")).await.unwrap();
    assert_eq!(raw(&folder.file()).execute("DELETE FROM bodies", []).unwrap(), 1);

    let JobLookup::Stored(found) = queue.job(&id("job")).await.unwrap() else {
        panic!("it is not found");
    };

    assert_eq!((found.job.id, found.job.payload.len()), (Some(id("job")), 0));
    assert!(found.job.headers.is_empty());
}
