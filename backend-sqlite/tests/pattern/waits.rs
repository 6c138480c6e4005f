//! Waits without a claim (`wait_for_jobs`) that follow a claim which found no job, and waits
//! for a batch. They look at the file only after an hour, so what ends them is a notification
//! or a due time.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use futures_util::FutureExt as _;
use relq_core::{
    Disposition, NewJob, ReliableQueue as _, ReliableQueueExt as _, Settlement,
    batch::{BatchId, BatchOutcome, BatchQueue as _, NewBatch},
};
use relq_sqlite::{
    SqliteQueue,
    testing::{AtStep, Side, at_each_step},
};
use tokio::time::timeout;

use crate::fixture::{Folder, ask, open, raw};

const HOUR: Duration = Duration::from_secs(3600);
const LIMIT: Duration = Duration::from_secs(60);

async fn empty(folder: &Folder) -> SqliteQueue {
    let queue = open(folder.config().poll_interval(HOUR)).await.unwrap();
    assert_eq!(queue.claim(&ask("worker")).await.unwrap(), []);
    queue
}

async fn wait_ends(queue: &SqliteQueue, why: &str) {
    let waited = timeout(LIMIT, queue.wait_for_jobs(HOUR)).await;
    waited.expect(why).unwrap();
}

/// R21: a push between the claim and the wait ends the wait.
#[tokio::test]
async fn a_push_between_the_claim_and_the_wait_ends_it() {
    let folder = Folder::new();
    let queue = empty(&folder).await;
    let other = folder.queue().await;

    other.push_one("job".into()).await.unwrap();

    wait_ends(&queue, "the push ends the wait").await;
    assert_eq!(queue.claim(&ask("worker")).await.unwrap().len(), 1);
}

/// R21: so does a push between a settlement with a claim and the wait.
#[tokio::test]
async fn a_push_after_a_settlement_that_claimed_nothing_ends_the_wait() {
    let folder = Folder::new();
    let queue = open(folder.config().poll_interval(HOUR)).await.unwrap();
    queue.push_one("first".into()).await.unwrap();
    let held = queue.claim_one(&ask("worker")).await.unwrap().unwrap();
    let done = [Settlement::new(held.receipt, Disposition::Done)];
    let both = queue.settle_and_claim(&done, &ask("worker")).await;
    assert_eq!(both.claimed.unwrap(), []);

    queue.push_one("second".into()).await.unwrap();

    wait_ends(&queue, "the push ends the wait").await;
}

/// R14: a job that falls due ends the wait, counted from the claim.
#[tokio::test]
async fn a_due_job_ends_the_wait() {
    const DELAY: Duration = Duration::from_millis(200);
    let folder = Folder::new();
    let queue = open(folder.config().poll_interval(HOUR)).await.unwrap();
    queue.push_one(NewJob::new("later").delay(DELAY)).await.unwrap();
    assert_eq!(queue.claim(&ask("worker")).await.unwrap(), []);

    wait_ends(&queue, "the due job ends the wait").await;

    // The times of the file are whole milliseconds, so the wait may end one of them early.
    let claiming = async {
        while queue.claim(&ask("worker")).await.unwrap().is_empty() {
            tokio::time::sleep(Duration::from_millis(1)).await;
        }
    };
    timeout(LIMIT, claiming).await.expect("R14: the job is due");
}

/// R21: an entry that another process writes after the claim ends the wait, however long
/// the wait may last.
#[tokio::test]
async fn a_write_of_another_process_ends_the_wait() {
    let folder = Folder::new();
    let brief = Duration::from_millis(20);
    let queue = open(folder.config().poll_interval(brief)).await.unwrap();
    assert_eq!(queue.claim(&ask("worker")).await.unwrap(), []);
    let quiet = timeout(10 * brief, queue.wait_for_jobs(HOUR)).await;
    assert!(quiet.is_err(), "R21: the wait ends and nothing was written");
    assert_eq!(queue.claim(&ask("worker")).await.unwrap(), []);

    raw(&folder.file())
        .execute("UPDATE queues SET next_turn = next_turn + 1", ())
        .unwrap();

    wait_ends(&queue, "the write ends the wait").await;
}

/// B5: a batch that completes after a call has looked at it, and before the call waits, ends
/// the wait.
#[tokio::test]
async fn a_completion_between_the_look_and_the_wait_ends_it() {
    let folder = Folder::new();
    let gate = Arc::new(Mutex::new(()));
    let passed = Arc::clone(&gate);
    let watch: AtStep = Arc::new(move |_: Side, _: &str| {
        drop(passed.lock().unwrap());
        Ok(())
    });
    let config = folder.config().poll_interval(HOUR);
    let queue = open(at_each_step(config, watch)).await.unwrap();
    let id = BatchId::new("b").unwrap();
    queue.create(&NewBatch::new(id.clone())).await.unwrap();
    queue.add(&id, &["piece".into()], None).await.unwrap();
    queue.seal(&id).await.unwrap();
    let piece = queue.claim_one(&ask("worker")).await.unwrap().unwrap();

    let waiting = {
        let _closed = gate.lock().unwrap();
        let mut waiting = queue.wait_batch(&id, HOUR);
        assert!((&mut waiting).now_or_never().is_none(), "its look is not answered");
        waiting
    };
    // The look is done before the settlement, and the call learns of it only after both.
    queue.ack(&piece.receipt).await.unwrap();
    let ended =
        timeout(LIMIT, waiting).await.expect("B5: the completion ends the wait");

    let status = ended.unwrap().unwrap();
    assert_eq!(status.outcome(), Some(BatchOutcome::Done));
}
