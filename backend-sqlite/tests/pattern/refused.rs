//! Each call of the queue traits on a file that refuses it (R21).

use std::{future::Future, pin::Pin, time::Duration};

use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, JobId, NewJob, Operator as _,
    ReliableQueue as _, ReliableQueueExt as _, Settlement, Stats, WorkerId,
    batch::{BatchId, BatchPriority, BatchQueue as _, Change, NewBatch},
    error::{Effect, ErrorContext, Operation, RetryAdvice},
    operator::{
        InspectQueue as _, JobState, JobView, PeekRequest, RestoreQueue as _,
        Selection, StateDetail, WorkerReport,
    },
    outcome::SettledAndClaimed,
    results::ResultQueue as _,
    schedule::{ScheduleName, ScheduleQueue as _, Tick},
};
use relq_sqlite::SqliteQueue;

use crate::fixture::{Folder, LONG, ask, eventually, many, open, raw};

/// How long a call waits for the lock of the file.
const SHORT: Duration = Duration::from_millis(60);

/// The future of one call, which runs only when it is polled.
type Call<'a> = Pin<Box<dyn Future<Output = Result<(), Error>> + Send + 'a>>;

/// The jobs, batches and schedules that the calls name.
struct Known {
    /// A leased job that keeps its result.
    held: Delivery,
    ready: JobId,
    scheduled: JobId,
    /// An open batch with one piece.
    batch: BatchId,
    tick: Tick,
}

impl Known {
    /// Stores what the calls need, so that each of them has something to do. Beside it these
    /// are a dead job, and one whose lease has expired.
    async fn prepare(queue: &SqliteQueue) -> Self {
        let kept = NewJob::new("held").keep_result(LONG);
        queue.push(&[kept, "buried".into(), "overdue".into()], None).await.unwrap();
        let held = queue.claim_one(&ask("w")).await.unwrap().unwrap();
        let buried = queue.claim_one(&ask("w")).await.unwrap().unwrap();
        queue.bury(&buried.receipt, "no").await.unwrap();
        let brief = Duration::from_millis(1);
        let brief = ClaimRequest::new(WorkerId::new("gone").unwrap(), brief);
        queue.claim_one(&brief).await.unwrap().unwrap();
        let is_overdue = || async { queue.stats().await.unwrap().overdue == 1 };
        eventually("a lease has expired", is_overdue).await;
        let ready = queue.push_one("ready".into()).await.unwrap();
        let scheduled = NewJob::new("scheduled").delay(LONG);
        let scheduled = queue.push_one(scheduled).await.unwrap();
        let batch = BatchId::new("open").unwrap();
        queue.create(&NewBatch::new(batch.clone())).await.unwrap();
        queue.add(&batch, &["piece".into()], None).await.unwrap();
        let name = ScheduleName::new("known").unwrap();
        queue.put_schedule(&name, b"definition").await.unwrap();
        let stored = queue.schedules().await.unwrap().schedules.remove(0);
        let tick = Tick::of(&stored, stored.last_tick.plus(Duration::from_millis(1)));
        let (ready, scheduled) = (ready.job().clone(), scheduled.job().clone());
        Self { held, ready, scheduled, batch, tick }
    }

    fn done(&self) -> [Settlement; 1] {
        [Settlement::new(self.held.receipt.clone(), Disposition::Done)]
    }
}

fn call<'a, T>(answer: impl Future<Output = Result<T, Error>> + Send + 'a) -> Call<'a> {
    Box::pin(async move { answer.await.map(drop) })
}

/// Returns one future for each call of the queue traits, with the operation that its error
/// names.
fn calls<'a>(queue: &'a SqliteQueue, known: &'a Known) -> Vec<(Operation, Call<'a>)> {
    let mut calls = of_workers(queue, known);
    calls.extend(of_operators(queue, known));
    calls.extend(of_batches(queue, &known.batch));
    calls.extend(of_options(queue, known));
    calls
}

fn writes<'a>(queue: &'a SqliteQueue, known: &'a Known) -> Vec<(Operation, Call<'a>)> {
    let mut calls = calls(queue, known);
    calls.retain(|(operation, _)| !operation.only_reads());
    calls
}

fn of_workers<'a>(
    queue: &'a SqliteQueue,
    known: &'a Known,
) -> Vec<(Operation, Call<'a>)> {
    let held = std::slice::from_ref(&known.held.receipt);
    vec![
        (
            Operation::Push,
            call(async move { queue.push(&["plain".into()], None).await }),
        ),
        (Operation::Claim, call(async move { queue.claim(&ask("w")).await })),
        (Operation::Settle, call(async move { queue.settle(&known.done()).await })),
        (
            Operation::Settle,
            call(async move { settle_and_claim(queue, known).await.settled }),
        ),
        (
            Operation::Claim,
            call(async move { settle_and_claim(queue, known).await.claimed }),
        ),
        (
            Operation::Extend,
            call(async move { queue.extend(&ask("w").worker, held, LONG).await }),
        ),
        (
            Operation::ReleaseWorker,
            call(async move { queue.release_worker(&ask("w").worker).await }),
        ),
        (
            Operation::ReportWorker,
            call(async move {
                let report = WorkerReport::new(ask("w").worker, many(1));
                queue.report_worker(&report).await
            }),
        ),
        (Operation::Recover, call(queue.recover(many(1)))),
    ]
}

async fn settle_and_claim(queue: &SqliteQueue, known: &Known) -> SettledAndClaimed {
    queue.settle_and_claim(&known.done(), &ask("w")).await
}

fn of_operators<'a>(
    queue: &'a SqliteQueue,
    known: &'a Known,
) -> Vec<(Operation, Call<'a>)> {
    let peek = |state: JobState| {
        let page = PeekRequest::new(state, many(1));
        (Operation::Peek, call(async move { queue.peek(&page).await }))
    };
    vec![
        (Operation::Stats, call(queue.stats())),
        peek(JobState::Scheduled),
        peek(JobState::Ready),
        peek(JobState::Leased),
        peek(JobState::Dead),
        (Operation::Redrive, call(queue.redrive(&Selection::All))),
        (Operation::Purge, call(queue.purge_dead(&Selection::All))),
        (Operation::Cancel, call(queue.cancel(&known.ready))),
        (Operation::Pause, call(queue.pause())),
        (Operation::Resume, call(queue.resume())),
        (Operation::Audit, call(queue.audit())),
        (Operation::Purge, call(queue.purge())),
    ]
}

fn of_batches<'a>(
    queue: &'a SqliteQueue,
    open: &'a BatchId,
) -> Vec<(Operation, Call<'a>)> {
    let new = NewBatch::new(BatchId::new("new").unwrap());
    let change = Change::default().priority(BatchPriority::LOWEST);
    vec![
        (Operation::CreateBatch, call(async move { queue.create(&new).await })),
        (
            Operation::AddPieces,
            call(async move { queue.add(open, &["piece".into()], None).await }),
        ),
        (Operation::AlterBatch, call(async move { queue.alter(open, &change).await })),
        (Operation::ReadBatch, call(queue.batch(open))),
        (Operation::ReadBatch, call(queue.list_batches(None, many(1)))),
        (Operation::WaitBatch, call(queue.wait_batch(open, Duration::ZERO))),
        (Operation::SealBatch, call(queue.seal(open))),
        (Operation::CancelBatch, call(queue.cancel_batch(open))),
    ]
}

/// The calls of the other options: inspection, restoring, results and schedules.
fn of_options<'a>(
    queue: &'a SqliteQueue,
    Known { held, ready, scheduled, tick, .. }: &'a Known,
) -> Vec<(Operation, Call<'a>)> {
    let id = JobId::new("restored").unwrap();
    let restored = [JobView::new(Some(id), "restored", StateDetail::Ready)];
    let held_id = std::slice::from_ref(held.job());
    vec![
        (Operation::ReadJob, call(queue.job(ready))),
        (Operation::RunNow, call(queue.run_now(scheduled))),
        (Operation::ReadWorkers, call(queue.workers(None, many(1)))),
        (Operation::Restore, call(async move { queue.restore(&restored).await })),
        (
            Operation::ReportProgress,
            call(queue.report_progress(&held.receipt, b"half")),
        ),
        (Operation::ReadResults, call(queue.read_results(held_id))),
        (Operation::WaitResult, call(queue.wait_result(held.job(), Duration::ZERO))),
        (Operation::PushTick, call(queue.push_tick(tick, "ticked".into()))),
        (Operation::ReadSchedules, call(queue.schedules())),
        (Operation::PutSchedule, call(queue.put_schedule(&tick.name, b"another"))),
        (Operation::RemoveSchedule, call(queue.remove_schedule(&tick.name))),
    ]
}

/// Asserts that the call fails, that its error says that nothing was changed, and that it
/// names the operation of the call. Returns the error.
async fn refusal(operation: Operation, call: Call<'_>) -> Error {
    let error = call.await.err().unwrap_or_else(|| panic!("{operation:?} is done"));
    let told = error.full_message();
    assert_eq!(error.at(), ErrorContext { backend: "sqlite", operation }, "{told}");
    assert_eq!(error.effect(), Effect::No, "{told}");
    error
}

/// The number of jobs in each state.
fn counts(stats: &Stats) -> [u64; 4] {
    [stats.scheduled, stats.ready, stats.leased, stats.dead]
}

/// R21: each call that must write to a locked file fails, says which call it was and that a
/// retry is safe, and changes nothing. The same call succeeds once the file is unlocked.
#[tokio::test]
async fn each_call_on_a_locked_file_can_be_repeated() {
    let folder = Folder::new();
    let queue = open(folder.config().busy_timeout(SHORT)).await.unwrap();
    let known = Known::prepare(&queue).await;
    let before = queue.stats().await.unwrap();
    let other = raw(&folder.file());
    other.execute_batch("BEGIN IMMEDIATE").unwrap();

    for (operation, call) in writes(&queue, &known) {
        let error = refusal(operation, call).await;
        assert!(matches!(error, Error::Unavailable { .. }), "{operation:?}: {error:?}");
        assert_eq!(error.retry_advice(), RetryAdvice::Safe, "{operation:?}");
    }

    let after = queue.stats().await.unwrap();
    assert_eq!(counts(&after), counts(&before), "nothing was changed");
    other.execute_batch("COMMIT").unwrap();
    for (operation, call) in writes(&queue, &known) {
        call.await.unwrap_or_else(|error| panic!("{operation:?}: {error:?}"));
    }
}

/// R21: each call on a file whose tables another program has removed fails, says which call
/// it was, and that only a person can help. A call that only reads does so too.
#[tokio::test]
async fn each_call_on_a_file_without_its_tables_needs_help() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let known = Known::prepare(&queue).await;
    let other = raw(&folder.file());
    other.execute_batch("PRAGMA foreign_keys = OFF").unwrap();
    let tables = "SELECT name FROM sqlite_schema
        WHERE type = 'table' AND name NOT LIKE 'sqlite%'";
    let mut tables = other.prepare(tables).unwrap();
    let tables = tables.query_map([], |row| row.get::<_, String>(0)).unwrap();
    for table in tables.collect::<Result<Vec<_>, _>>().unwrap() {
        other.execute_batch(&format!("DROP TABLE {table}")).unwrap();
    }

    for (operation, call) in calls(&queue, &known) {
        let error = refusal(operation, call).await;
        assert!(matches!(error, Error::Unusable { .. }), "{operation:?}: {error:?}");
        assert!(error.needs_help(), "{operation:?}: {error:?}");
    }
}
