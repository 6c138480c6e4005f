//! Calls that wait for the end of a job.

use std::{
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use relq_core::{
    JobId, Operator as _, ReliableQueue as _, ReliableQueueExt as _,
    environment::Environment,
    results::{JobResult, ResultQueue as _},
};
use relq_sqlite::{
    SqliteConfig, SqliteQueue,
    testing::{AtStep, Side, at_each_step},
};

use super::{claim, done, done_with, kept, push, rows, settle, unfinished};
use crate::fixture::{
    Folder, LONG, Notes, ask, eventually, file_of_child, many, open, spawn,
};

/// So long that a call which waits was woken if it returns earlier.
const NEVER: Duration = Duration::from_secs(60 * 60);

/// A poll would notice the end after an hour, so a notification wakes the call.
#[tokio::test]
async fn an_end_wakes_the_calls_of_all_handles_of_this_process() {
    let folder = Folder::new();
    let queue = open(folder.config().poll_interval(NEVER)).await.unwrap();
    let worker = folder.queue().await;
    let job = push(&queue, kept("a")).await;
    let receipt = claim(&worker).await.receipt;

    let wait = || queue.wait_result(&job, NEVER);
    let own_wait = worker.wait_result(&job, NEVER);
    let (one, two, own, ()) = tokio::join!(wait(), wait(), own_wait, async {
        queue.report_progress(&receipt, b"half").await.unwrap();
        settle(&worker, &receipt, done_with("42")).await;
    });

    assert_eq!([one, two, own].map(Result::unwrap), [(); 3].map(|()| done("42")));
}

#[tokio::test]
async fn a_burial_and_a_purge_wake_the_calls() {
    let folder = Folder::new();
    let queue = open(folder.config().poll_interval(NEVER)).await.unwrap();
    let dead = push(&queue, kept("dead")).await;
    let receipt = claim(&queue).await.receipt;
    let purged = push(&queue, kept("purged")).await;

    let (found, ()) = tokio::join!(queue.wait_result(&dead, NEVER), async {
        queue.bury(&receipt, "broken").await.unwrap();
    });
    assert_eq!(found.unwrap(), Some(JobResult::Dead { error: "broken".to_owned() }));
    let (found, ()) = tokio::join!(queue.wait_result(&purged, NEVER), async {
        assert_eq!(queue.purge().await.unwrap(), 2);
    });
    assert_eq!(found.unwrap(), None);
    assert_eq!(rows(&folder), 0);
}

#[tokio::test]
async fn a_wait_ends_at_its_time_limit_and_for_an_unknown_job_at_once() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let job = push(&queue, kept("a")).await;
    let unknown = JobId::new("unknown").unwrap();

    let brief = Duration::from_millis(50);
    assert_eq!(queue.wait_result(&job, brief).await.unwrap(), unfinished(None));
    assert_eq!(queue.wait_result(&unknown, NEVER).await.unwrap(), None);
}

#[tokio::test]
#[ignore = "started by another test, in a process of its own"]
async fn child_finishes_one() {
    let file = file_of_child();
    let queue = open(SqliteConfig::file(&file).busy_timeout(LONG)).await.unwrap();
    Notes::of(&file, "open").add(&[1]);
    let claimed = queue.claim_one(&ask("child").wait(LONG)).await.unwrap().unwrap();
    settle(&queue, &claimed.receipt, done_with("42")).await;
}

#[tokio::test]
async fn an_end_in_another_process_is_noticed() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let _child = spawn("results::waits::child_finishes_one", &folder.file());
    let opened = Notes::of(&folder.file(), "open");
    eventually("the child opens the file", || async { !opened.read().is_empty() })
        .await;

    let began = Instant::now();
    let job = push(&queue, kept("a")).await;
    let wait = || queue.wait_result(&job, LONG);
    let (one, two) = tokio::join!(wait(), wait());

    assert_eq!([one.unwrap(), two.unwrap()], [done("42"), done("42")]);
    assert!(began.elapsed() < LONG, "{:?}", began.elapsed());
}

/// Many waits are looked after in steps, each of which reads some of them. The wait for the job
/// that ends is not in the first step.
#[tokio::test]
async fn each_step_of_waits_is_looked_after() {
    // Without this look a call looks itself, every ten seconds. The machine may stand still
    // for a while, so one short round in five is enough.
    let mut rounds = Vec::new();
    while rounds.len() < 5 {
        let waited = time_until_a_wait_behind_others_ends().await;
        if waited < Duration::from_secs(5) {
            return;
        }
        rounds.push(waited);
    }
    panic!("each round took 5 s and more: {rounds:?}");
}

/// Returns the time from the end of a job until a call that waits for it returns, with one
/// wait a step and four waits on either side.
async fn time_until_a_wait_behind_others_ends() -> Duration {
    let folder = Folder::new();
    let one_by_one = Environment::default().with_max_jobs_per_step(many(1));
    let queue = open(folder.config().environment(one_by_one)).await.unwrap();
    let mut others = Vec::new();
    for _ in 0..4 {
        others.push(push(&queue, kept("before").delay(NEVER)).await);
    }
    let job = push(&queue, kept("a")).await;
    for _ in 0..4 {
        others.push(push(&queue, kept("behind").delay(NEVER)).await);
    }
    let others = join_all(others.iter().map(|job| queue.wait_result(job, NEVER)));
    let waited = async {
        assert_eq!(queue.wait_result(&job, NEVER).await.unwrap(), done("42"));
        Instant::now()
    };
    let ended = async {
        let _child = spawn("results::waits::child_finishes_one", &folder.file());
        let is_done = || async { queue.stats().await.unwrap().finished == 1 };
        eventually("the child finishes its job", is_done).await;
        Instant::now()
    };

    tokio::select! {
        others = others => panic!("nobody ends these jobs: {others:?}"),
        (waited, ended) = async { tokio::join!(waited, ended) } => {
            waited.saturating_duration_since(ended)
        }
    }
}

/// A call that began to wait and is not polled any more does not hold up other calls.
#[tokio::test]
async fn a_wait_that_is_not_polled_holds_up_no_other() {
    const LIMIT: Duration = Duration::from_secs(20);
    let folder = Folder::new();
    let (config, polls) = counting(folder.config(), "PRAGMA data_version");
    let queue = open(config).await.unwrap();
    let (job, other) = (push(&queue, kept("a")).await, push(&queue, kept("b")).await);
    let mut idle = pin!(queue.wait_result(&other, LONG));
    tokio::select! {
        found = &mut idle => panic!("nobody ends the job: {found:?}"),
        () = eventually("it waits", || async { polls.load(Ordering::Relaxed) > 1 }) => {}
    }

    let began = Instant::now();
    let (found, _child) = tokio::join!(queue.wait_result(&job, LIMIT), async {
        spawn("results::waits::child_finishes_one", &folder.file())
    });

    assert_eq!(found.unwrap(), done("42"));
    assert!(began.elapsed() < LIMIT, "it is found by the last look only");
}

/// Counts the statements that begin with this text.
fn counting(
    config: SqliteConfig,
    start: &'static str,
) -> (SqliteConfig, Arc<AtomicUsize>) {
    let counted = Arc::new(AtomicUsize::new(0));
    let counter = Arc::clone(&counted);
    let count: AtStep = Arc::new(move |side, sql| {
        let counts = side == Side::After && sql.starts_with(start);
        counter.fetch_add(usize::from(counts), Ordering::Relaxed);
        Ok(())
    });
    (at_each_step(config, count), counted)
}

/// Sixty calls that wait for jobs of their own, for five seconds.
async fn wait_in_a_crowd(queue: &SqliteQueue) {
    let jobs = queue.push(&vec![kept("a"); 60], None).await.unwrap();
    let limit = Duration::from_secs(5);
    let waits = jobs.iter().map(|job| queue.wait_result(job.job(), limit));
    let found = futures_util::future::try_join_all(waits).await.unwrap();
    assert_eq!(found, vec![unfinished(None); 60]);
}

/// If each call polled, a thousand waiting calls would take all the time of the thread that
/// pushes and settles.
#[tokio::test]
async fn one_poll_serves_all_waiting_calls() {
    let folder = Folder::new();
    let config = folder.config().poll_interval(Duration::from_millis(500));
    let (config, polls) = counting(config, "PRAGMA data_version");
    let queue = open(config).await.unwrap();

    wait_in_a_crowd(&queue).await;

    let polls = polls.load(Ordering::Relaxed);
    assert!((1..60).contains(&polls), "{polls} polls");
}

/// A burial wakes only the calls that wait for its job.
#[tokio::test]
async fn other_burials_wake_no_call() {
    let folder = Folder::new();
    let config = folder.config().poll_interval(NEVER);
    let (config, reads) = counting(config, "-- Read what became of a job");
    let queue = open(config).await.unwrap();
    queue.push(&vec![kept("other"); 10], None).await.unwrap();
    let others = queue.claim(&ask("w").max(many(10))).await.unwrap();

    tokio::join!(wait_in_a_crowd(&queue), async {
        let all_wait = || async { reads.load(Ordering::Relaxed) >= 60 };
        eventually("all calls wait", all_wait).await;
        for held in &others {
            queue.bury(&held.receipt, "broken").await.unwrap();
        }
    });

    assert_eq!(others.len(), 10);
    let reads = reads.load(Ordering::Relaxed);
    assert_eq!(reads, 2 * 60, "each call reads when it begins and when it ends");
}
