//! Results of jobs in a file (R29).

mod waits;

use std::{slice::from_ref, time::Duration};

use relq_core::{
    Delivery, Disposition, Error, JobId, NewJob, Operator as _, Receipt,
    ReliableQueue as _, ReliableQueueExt as _,
    batch::{BatchId, BatchQueue as _, NewBatch},
    operator::{Cancelled, Selection},
    outcome::{DuplicateOf, Extended, Pushed, Settled},
    results::{JobResult, MAX_RESULT, Reported, ResultQueue as _},
};
use relq_sqlite::SqliteQueue;

use crate::fixture::{Folder, LONG, ask, eventually, many, open, raw};

fn kept(payload: &str) -> NewJob {
    NewJob::new(payload.to_owned()).keep_result(LONG)
}

async fn push(queue: &SqliteQueue, job: NewJob) -> JobId {
    match queue.push_one(job).await.unwrap() {
        Pushed::Stored(id) => id,
        refused => panic!("{refused:?}"),
    }
}

async fn claim(queue: &SqliteQueue) -> Delivery {
    queue.claim_one(&ask("w")).await.unwrap().unwrap()
}

async fn settle(queue: &SqliteQueue, receipt: &Receipt, disposition: Disposition) {
    let settled = queue.settle_one(receipt, disposition).await.unwrap();
    assert_eq!(settled, Settled::Applied);
}

fn done_with(result: &str) -> Disposition {
    Disposition::DoneWith { result: result.to_owned().into() }
}

async fn read(queue: &SqliteQueue, job: &JobId) -> Option<JobResult> {
    let mut found = queue.read_results(from_ref(job)).await.unwrap();
    assert_eq!(found.len(), 1);
    found.pop().unwrap()
}

fn unfinished(progress: Option<&'static str>) -> Option<JobResult> {
    Some(JobResult::Unfinished { progress: progress.map(Into::into) })
}

fn done(result: &'static str) -> Option<JobResult> {
    Some(JobResult::Done { result: result.into() })
}

async fn is_consistent(queue: &SqliteQueue) {
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
}

fn rows(folder: &Folder) -> i64 {
    let sql = "SELECT count(*) FROM results";
    raw(&folder.file()).query_row(sql, [], |row| row.get(0)).unwrap()
}

#[tokio::test]
async fn the_last_progress_is_shown_until_the_job_is_done() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let job = push(&queue, kept("a")).await;
    assert_eq!(read(&queue, &job).await, unfinished(None));

    let first = claim(&queue).await;
    assert!(first.keeps_result);
    for progress in [&b"a third"[..], b"half"] {
        let reported = queue.report_progress(&first.receipt, progress).await.unwrap();
        assert_eq!(reported, Reported::Stored);
    }
    queue.retry(&first.receipt, Duration::ZERO, "no").await.unwrap();
    assert_eq!(read(&queue, &job).await, unfinished(Some("half")));

    settle(&queue, &claim(&queue).await.receipt, done_with("42")).await;
    assert_eq!(read(&queue, &job).await, done("42"));
    is_consistent(&queue).await;
}

#[tokio::test]
async fn a_job_that_keeps_no_result_pays_for_none() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let job = push(&queue, NewJob::new("a")).await;

    let claimed = claim(&queue).await;
    let reported = queue.report_progress(&claimed.receipt, b"half").await.unwrap();
    settle(&queue, &claimed.receipt, done_with("42")).await;

    assert!(!claimed.keeps_result);
    assert_eq!(reported, Reported::NotKept);
    assert_eq!(read(&queue, &job).await, None);
    assert_eq!(rows(&folder), 0);
}

/// R7: a worker that has lost its lease shows no progress.
#[tokio::test]
async fn a_lost_lease_reports_nothing() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let job = push(&queue, kept("a")).await;
    let lost = claim(&queue).await;
    settle(&queue, &lost.receipt, Disposition::GiveBack).await;
    claim(&queue).await;

    let reported = queue.report_progress(&lost.receipt, b"late").await.unwrap();

    assert_eq!(reported, Reported::LeaseLost);
    assert_eq!(read(&queue, &job).await, unfinished(None));
}

#[tokio::test]
async fn each_settlement_that_ends_a_job_is_recorded() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    for (disposition, result) in [
        (Disposition::Done, JobResult::Done { result: "".into() }),
        (done_with("42"), JobResult::Done { result: "42".into() }),
        (Disposition::Discard, JobResult::Discarded),
        (
            Disposition::Dead { error: "broken".to_owned() },
            JobResult::Dead { error: "broken".to_owned() },
        ),
    ] {
        let job = push(&queue, kept("a")).await;
        settle(&queue, &claim(&queue).await.receipt, disposition).await;
        assert_eq!(read(&queue, &job).await, Some(result));
    }
    is_consistent(&queue).await;
}

#[tokio::test]
async fn a_job_that_is_cancelled_in_any_state_is_recorded() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let held = push(&queue, kept("held")).await;
    claim(&queue).await;
    let ready = push(&queue, kept("ready")).await;
    let scheduled = push(&queue, kept("scheduled").delay(LONG)).await;

    for job in [held, ready, scheduled] {
        let cancelled = queue.cancel(&job).await.unwrap();
        assert!(matches!(cancelled, Cancelled::Removed(_)), "{cancelled:?}");
        assert_eq!(
            read(&queue, &job).await,
            Some(JobResult::Cancelled { leader: None })
        );
    }
    is_consistent(&queue).await;
}

#[tokio::test]
async fn a_dead_job_is_dead_until_it_is_redriven_or_purged() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let job = push(&queue, kept("a").max_attempts(1.try_into().unwrap())).await;
    let claimed = claim(&queue).await;
    queue.report_progress(&claimed.receipt, b"half").await.unwrap();
    queue.retry(&claimed.receipt, Duration::ZERO, "no luck").await.unwrap();

    let Some(JobResult::Dead { error }) = read(&queue, &job).await else {
        panic!("it is not dead")
    };
    assert!(error.contains("out of attempts") && error.contains("no luck"), "{error}");
    assert_eq!(queue.redrive(&Selection::All).await.unwrap().moved, 1);
    assert_eq!(read(&queue, &job).await, unfinished(None));

    queue.bury(&claim(&queue).await.receipt, "broken").await.unwrap();
    assert_eq!(queue.purge_dead(&Selection::All).await.unwrap(), 1);
    assert_eq!(read(&queue, &job).await, Some(JobResult::Purged));
    is_consistent(&queue).await;
}

/// One statement recovers many jobs. Those that it buries are dead for a reader, too.
#[tokio::test]
async fn a_recovery_that_buries_a_job_is_seen() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let job = kept("a").max_attempts(1.try_into().unwrap());
    let job = push(&queue, job.lease(Duration::from_millis(100))).await;
    claim(&queue).await;

    eventually("it is buried", || async {
        queue.recover(many(10)).await.unwrap().buried == 1
    })
    .await;

    let Some(JobResult::Dead { error }) = read(&queue, &job).await else {
        panic!("it is not dead")
    };
    assert!(error.contains("the lease expired on attempt 1"), "{error}");
}

/// B7: pieces that a cancel drops are cancelled, those that wait and the one that is held.
#[tokio::test]
async fn pieces_that_are_dropped_with_their_batch_are_cancelled() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let batch = BatchId::new("b").unwrap();
    queue.create(&NewBatch::new(batch.clone())).await.unwrap();
    let pieces = ["held", "waiting"].map(|it| kept(it).id(JobId::new(it).unwrap()));
    queue.add(&batch, &pieces, None).await.unwrap();
    let claimed = claim(&queue).await;
    let jobs = pieces.map(|piece| piece.id.unwrap());

    queue.cancel_batch(&batch).await.unwrap();
    let after_cancel = queue.read_results(&jobs).await.unwrap();
    let held = [claimed.receipt];
    let worker = ask("w").worker;
    let extended = queue.extend(&worker, &held, LONG).await.unwrap();

    assert_eq!(
        after_cancel,
        [unfinished(None), Some(JobResult::Cancelled { leader: None })]
    );
    assert_eq!(extended, [Extended::Cancelled]);
    let after_extend = queue.read_results(&jobs).await.unwrap();
    assert_eq!(
        after_extend,
        [JobResult::Cancelled { leader: None }, JobResult::Cancelled { leader: None }]
            .map(Some)
    );
    is_consistent(&queue).await;
}

#[tokio::test]
async fn a_result_is_removed_when_its_time_is_over() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let job = push(&queue, kept("a")).await;
    let dead = push(&queue, kept("b")).await;
    for disposition in [done_with("42"), Disposition::Dead { error: "no".to_owned() }] {
        settle(&queue, &claim(&queue).await.receipt, disposition).await;
    }
    assert_eq!(read(&queue, &job).await, done("42"));

    // The time of the dead job has not begun: that job is kept until it is purged.
    let update = "UPDATE results SET until = until - ?1 WHERE until IS NOT NULL";
    let kept_ms = i64::try_from(LONG.as_millis()).unwrap();
    assert_eq!(raw(&folder.file()).execute(update, [kept_ms]).unwrap(), 1);

    assert_eq!(read(&queue, &job).await, None);
    assert_eq!(rows(&folder), 2);
    queue.recover(many(10)).await.unwrap();

    assert_eq!(rows(&folder), 1);
    assert_eq!(
        read(&queue, &dead).await,
        Some(JobResult::Dead { error: "no".to_owned() })
    );
}

/// R4: the id that relq made is remembered, so a job with that id is a duplicate.
#[tokio::test]
async fn the_id_of_a_kept_result_is_remembered() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let job = push(&queue, kept("a")).await;
    settle(&queue, &claim(&queue).await.receipt, done_with("42")).await;

    let again = queue.push_one(kept("a").id(job.clone())).await.unwrap();

    let by = DuplicateOf::Id;
    assert_eq!(again, Pushed::Duplicate { existing: job.clone(), by });
    assert_eq!(read(&queue, &job).await, done("42"));
}

#[tokio::test]
async fn a_new_job_of_a_forgotten_id_replaces_the_result() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let job = push(&queue, kept("a")).await;
    settle(&queue, &claim(&queue).await.receipt, done_with("42")).await;
    raw(&folder.file()).execute_batch("DELETE FROM ended_ids").unwrap();

    push(&queue, kept("a").id(job.clone())).await;

    assert_eq!(read(&queue, &job).await, unfinished(None));
    is_consistent(&queue).await;
}

#[tokio::test]
async fn large_results_are_removed_in_several_steps() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    for _ in 0..3 {
        push(&queue, kept("a")).await;
        let large = "x".repeat(MAX_RESULT);
        settle(&queue, &claim(&queue).await.receipt, done_with(&large)).await;
    }
    let file = raw(&folder.file());
    file.execute_batch("UPDATE results SET until = 1").unwrap();
    let left = || file.query_one("SELECT count(*) FROM results", [], |row| row.get(0));

    let mut steps = Vec::new();
    while steps.last() != Some(&0) && steps.len() < 10 {
        queue.recover(many(100)).await.unwrap();
        steps.push(left().unwrap());
    }

    assert_eq!(steps, [2, 1, 0]);
}

#[tokio::test]
async fn large_results_are_all_read() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let large = "x".repeat(MAX_RESULT);
    let mut jobs = Vec::new();
    for _ in 0..3 {
        jobs.push(push(&queue, kept("a")).await);
        settle(&queue, &claim(&queue).await.receipt, done_with(&large)).await;
    }

    let found = queue.read_results(&jobs).await.unwrap();

    let wanted = JobResult::Done { result: large.clone().into() };
    assert!(found == vec![Some(wanted); 3], "{} results", found.len());
    push(&queue, kept("a")).await;
    let receipt = claim(&queue).await.receipt;
    let refused = queue.settle_one(&receipt, done_with(&(large + "x"))).await;
    assert!(matches!(refused, Err(Error::Invalid { .. })), "{refused:?}");
}

/// R23: the audit finds a result that would stay unfinished for ever.
#[tokio::test]
async fn a_result_of_no_job_is_found() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let job = push(&queue, kept("a").id(JobId::new("lost").unwrap())).await;
    raw(&folder.file()).execute_batch("DELETE FROM jobs; DELETE FROM bodies").unwrap();

    let problems = queue.audit().await.unwrap().problems;
    let error = queue.read_results(from_ref(&job)).await.unwrap_err();

    assert_eq!(problems, ["a result is kept for no job, under the id lost"]);
    assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
}

/// R23: the audit finds a job whose end nothing would record.
#[tokio::test]
async fn a_job_without_its_record_is_found() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    push(&queue, kept("a").id(JobId::new("mine").unwrap())).await;
    raw(&folder.file()).execute_batch("DELETE FROM results").unwrap();

    let problems = queue.audit().await.unwrap().problems;

    assert_eq!(problems, ["job mine keeps its result, and has no row for it"]);
}

/// R29: what is outdated is removed by `recover`, however much there is.
#[tokio::test]
async fn recoveries_remove_all_outdated_results() {
    let folder = Folder::new();
    let queue = open(folder.config()).await.unwrap();
    let moment = Duration::from_millis(1);
    let jobs = vec![NewJob::new("x").keep_result(moment); 250];
    for pushed in queue.push(&jobs, None).await.unwrap() {
        let Pushed::Stored(id) = pushed else { panic!("{pushed:?}") };
        queue.cancel(&id).await.unwrap();
    }
    let to_come =
        "SELECT count(*) FROM results WHERE until > 1000 * unixepoch('subsec')";
    let file = raw(&folder.file());
    eventually("all are outdated", || async {
        file.query_row(to_come, [], |row| row.get::<_, i64>(0)).unwrap() == 0
    })
    .await;

    while queue.recover(many(100)).await.unwrap().more {}

    assert_eq!(rows(&folder), 0);
}
