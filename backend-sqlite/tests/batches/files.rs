//! Tests of files with batches: a file of an older relq is migrated, and ended batches
//! leave nothing in the file.

use std::{
    num::NonZeroU32,
    path::Path,
    time::{Duration, Instant},
};

use relq_core::{
    batch::{
        BatchId, BatchOutcome, BatchQueue, BatchState, Created, NewBatch, OnComplete,
    },
    environment::Environment,
    operator::{JobState, PeekRequest, Selection},
    outcome::Extended,
    *,
};
use relq_sqlite::{SqliteConfig, SqliteQueue};
use rusqlite::Connection;

const LEASE: Duration = Duration::from_secs(60);
const PATIENCE: Duration = Duration::from_secs(30);

async fn open(file: &Path) -> SqliteQueue {
    let queue = QueueName::new("jobs").unwrap();
    SqliteQueue::open(SqliteConfig::file(file), queue).await.unwrap()
}

fn ask(max: u32) -> ClaimRequest {
    let worker = WorkerId::new("worker").unwrap();
    ClaimRequest::new(worker, LEASE).max(NonZeroU32::new(max).unwrap())
}

/// Writes a file with version 1 of the schema. One job in it is ready, and another is
/// leased.
fn make_old_file(file: &Path) {
    let conn = Connection::open(file).unwrap();
    conn.execute_batch(include_str!("../../sql/schema_1.sql")).unwrap();
    conn.execute_batch(
        "INSERT INTO queues (queue, name, next_turn) VALUES (1, 'jobs', 3);
         INSERT INTO jobs (job, queue, id, keeps_id, state, priority, turn, max_attempts)
         VALUES (1, 1, 'ready', 0, 'ready', 5, 1, 25);
         INSERT INTO jobs (job, queue, id, keeps_id, state, priority, turn, at, since,
                           worker, token, attempt, max_attempts)
         VALUES (2, 1, 'leased', 0, 'leased', 5, 2, 1, 1, 'gone', x'00', 1, 25);
         INSERT INTO jobs (job, queue, id, keeps_id, state, priority, at, max_attempts)
         VALUES (3, 1, 'due first', 0, 'scheduled', 5, 7, 25),
                (4, 1, 'due second', 0, 'scheduled', 5, 7, 25);
         INSERT INTO bodies (job, payload)
         VALUES (1, x'61'), (2, x'62'), (3, x'63'), (4, x'64');
         PRAGMA user_version = 1;",
    )
    .unwrap();
    let relq = u32::from_be_bytes(*b"relq");
    conn.pragma_update(None, "application_id", relq).unwrap();
}

/// R1: jobs in a file of version 1 are still there after its migration to batches.
#[tokio::test]
async fn an_older_file_is_brought_up_with_its_jobs() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.db");
    make_old_file(&file);

    let queue = open(&file).await;
    assert_eq!(scheduled(&queue).await, ["c", "d"]);
    queue.recover(NonZeroU32::MIN).await.unwrap();
    let taken = queue.claim(&ask(9)).await.unwrap();

    let payloads: Vec<_> = taken.iter().map(|one| one.payload.clone()).collect();
    assert_eq!(payloads, ["a", "b", "c", "d"]);
    assert!(taken.iter().all(|one| one.batch.is_none()));
    let batch = NewBatch::new(BatchId::new("b").unwrap());
    assert_eq!(queue.create(&batch).await.unwrap(), Created::Stored);
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
}

/// Returns the payloads of the scheduled jobs, which it reads in pages of one job.
async fn scheduled(queue: &SqliteQueue) -> Vec<Bytes> {
    let mut ask = PeekRequest::new(JobState::Scheduled, NonZeroU32::MIN);
    let mut payloads = Vec::new();
    loop {
        let page = queue.peek(&ask).await.unwrap();
        payloads.extend(page.jobs.into_iter().map(|job| job.payload));
        ask.after = page.next;
        if ask.after.is_none() {
            return payloads;
        }
    }
}

fn rows(file: &Path) -> Vec<(&'static str, u64)> {
    let conn = Connection::open(file).unwrap();
    let count = |table| {
        let sql = format!("SELECT count(*) FROM {table}");
        (table, conn.query_row(&sql, [], |row| row.get(0)).unwrap())
    };
    ["batches", "completions", "jobs", "bodies"].map(count).to_vec()
}

/// B6: batches that were done, failed, cancelled or empty leave no row in any table
/// once they are removed.
#[tokio::test]
async fn nothing_is_left_in_the_file() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.db");
    let queue = open(&file).await;
    for (name, pieces) in [("done", 3), ("failed", 2), ("cancelled", 2), ("empty", 0)] {
        let id = BatchId::new(name).unwrap();
        let told = OnComplete::new(NewJob::new("complete"));
        let batch = NewBatch::new(id.clone()).on_complete(told);
        queue.create(&batch.retention(NewBatch::MIN_RETENTION)).await.unwrap();
        queue.add(&id, &vec![NewJob::new(name); pieces], None).await.unwrap();
        queue.seal(&id).await.unwrap();
    }
    queue.cancel_batch(&BatchId::new("cancelled").unwrap()).await.unwrap();
    loop {
        let taken = queue.claim(&ask(100)).await.unwrap();
        if taken.is_empty() {
            break;
        }
        for one in taken {
            let fails = one.payload == "failed";
            let disposition = Disposition::Dead { error: "no".to_owned() };
            let disposition = if fails { disposition } else { Disposition::Done };
            queue.settle_one(&one.receipt, disposition).await.unwrap();
        }
    }
    assert_eq!(queue.purge_dead(&Selection::All).await.unwrap(), 2);

    let give_up = Instant::now() + PATIENCE;
    let many = NonZeroU32::new(100).unwrap();
    while !queue.list_batches(None, many).await.unwrap().is_empty() {
        assert!(Instant::now() < give_up, "they are kept: {:?}", rows(&file));
        tokio::time::sleep(Duration::from_millis(50)).await;
        queue.recover(many).await.unwrap();
    }

    let wanted = [("batches", 0), ("completions", 0), ("jobs", 0), ("bodies", 0)];
    assert_eq!(rows(&file), wanted);
}

/// B5: a store in memory holds only one queue, so it refuses a batch whose completion
/// job is for another queue.
#[tokio::test]
async fn memory_refuses_a_completion_elsewhere() {
    let here = QueueName::new("jobs").unwrap();
    let queue = SqliteQueue::open(SqliteConfig::memory(), here).await.unwrap();
    let elsewhere = QueueName::new("others").unwrap();
    let told = OnComplete::new(NewJob::new("complete")).queue(elsewhere);

    let batch = NewBatch::new(BatchId::new("b").unwrap()).on_complete(told);
    let refused = queue.create(&batch).await;

    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
}

/// Recovers again and again while there is more, as a worker does.
async fn recover_all(queue: &SqliteQueue) {
    for _ in 0..20 {
        if !queue.recover(NonZeroU32::MIN).await.unwrap().more {
            return;
        }
    }
    panic!("a recovery finds more and more to do");
}

/// B7: a client has died between two pages of a cancel. No claim gets a piece that is left,
/// and a recovery drops it.
#[tokio::test]
async fn a_half_cancelled_batch_gives_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.db");
    let queue = open(&file).await;
    let id = BatchId::new("b").unwrap();
    queue.create(&NewBatch::new(id.clone())).await.unwrap();
    queue.add(&id, &vec![NewJob::new("piece"); 3], None).await.unwrap();
    let conn = Connection::open(&file).unwrap();
    conn.execute_batch("UPDATE batches SET state = 'cancelling'").unwrap();
    queue.push_one("plain".into()).await.unwrap();

    let taken = queue.claim(&ask(9)).await.unwrap();

    let payloads: Vec<_> = taken.iter().map(|one| one.payload.clone()).collect();
    assert_eq!(payloads, ["plain"], "B7: no piece of a cancelled batch is claimed");
    recover_all(&queue).await;
    let status = queue.batch(&id).await.unwrap().unwrap();
    let cancelled = BatchState::Completed(BatchOutcome::Cancelled);
    let ended = (status.state, status.dropped);
    assert_eq!(ended, (cancelled, 3), "B7: a recovery drops the pieces");
}

/// B7, R23: a purge that was interrupted has closed all batches. One with a leased piece is
/// kept until the piece has ended, so that the piece is dropped when its lease expires.
#[tokio::test]
async fn a_closed_batch_stays_until_its_last_piece_has_ended() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.db");
    let queue = open(&file).await;
    let [id, empty] = ["b", "empty"].map(|name| BatchId::new(name).unwrap());
    for batch in [&id, &empty] {
        queue.create(&NewBatch::new(batch.clone())).await.unwrap();
    }
    queue.add(&id, &["piece".into()], None).await.unwrap();
    assert_eq!(queue.claim(&ask(1)).await.unwrap().len(), 1);
    let conn = Connection::open(&file).unwrap();
    let closed =
        "UPDATE batches SET state = 'cancelled', completed_at = 1, remove_at = 1";
    conn.execute_batch(closed).unwrap();

    recover_all(&queue).await;
    assert_eq!(queue.batch(&empty).await.unwrap(), None, "B6: it has no piece");
    let kept = queue.batch(&id).await.unwrap();
    assert!(kept.is_some(), "B7: the batch of a leased piece is kept");
    conn.execute_batch("UPDATE jobs SET at = 1").unwrap();
    recover_all(&queue).await;

    let wanted = [("batches", 0), ("completions", 0), ("jobs", 0), ("bodies", 0)];
    assert_eq!(rows(&file), wanted, "B7: the piece is dropped, and the batch removed");
}

/// B7: a damaged batch counts pieces that it does not have. A cancel and a recovery
/// drop its existing pieces and then stop. The audit reports the damage (R23).
#[tokio::test]
async fn a_damaged_count_stops_no_cancel() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.db");
    let queue = open(&file).await;
    let id = BatchId::new("b").unwrap();
    queue.create(&NewBatch::new(id.clone())).await.unwrap();
    queue.add(&id, &vec![NewJob::new("piece"); 3], None).await.unwrap();
    let conn = Connection::open(&file).unwrap();
    conn.execute_batch("UPDATE batches SET total = total + 1, ready = ready + 1")
        .unwrap();

    let cancel = queue.cancel_batch(&id);
    let status =
        tokio::time::timeout(PATIENCE, cancel).await.expect("it ends").unwrap();
    recover_all(&queue).await;

    let status = status.unwrap();
    assert_eq!((status.state, status.dropped), (BatchState::Cancelling, 3));
    let problems = queue.audit().await.unwrap().problems;
    assert_eq!(problems, ["batch b counts other pieces than it has"]);
}

/// R21: of a cancelled batch whose canceller has died, heartbeats drop no more waiting pieces
/// than one step may, however many pieces they end themselves.
#[tokio::test]
async fn a_heartbeat_drops_few_pieces_of_a_cancelled_batch() {
    const STEP: u32 = 4;
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("jobs.db");
    let step = NonZeroU32::new(STEP).unwrap();
    let environment = Environment::default().with_max_jobs_per_step(step);
    let config = SqliteConfig::file(&file).environment(environment);
    let name = QueueName::new("jobs").unwrap();
    let queue = SqliteQueue::open(config, name).await.unwrap();
    let id = BatchId::new("b").unwrap();
    queue.create(&NewBatch::new(id.clone())).await.unwrap();
    queue.add(&id, &vec![NewJob::new("piece"); 50], None).await.unwrap();
    let held = queue.claim(&ask(4)).await.unwrap();
    let conn = Connection::open(&file).unwrap();
    conn.execute_batch("UPDATE batches SET state = 'cancelling'").unwrap();
    let receipts: Vec<_> = held.into_iter().map(|held| held.receipt).collect();

    let extended = queue.extend(&ask(1).worker, &receipts, LEASE).await.unwrap();

    assert_eq!(extended, [Extended::Cancelled; 4]);
    let status = queue.batch(&id).await.unwrap().unwrap();
    assert_eq!(status.dropped, u64::from(4 + STEP));
}
