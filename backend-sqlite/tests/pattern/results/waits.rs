//! Calls that wait for the end of a job.

use std::{
    future::pending,
    pin::{Pin, pin},
    sync::{
        Arc,
        atomic::{AtomicUsize, Ordering},
    },
    time::{Duration, Instant},
};

use futures_util::future::join_all;
use relq_core::{
    Delivery, Disposition, JobId, Operator as _, QueueName, ReliableQueue as _,
    ReliableQueueExt as _,
    environment::{Clock, Environment, SystemClock, Timestamp},
    operator::{Cancelled, JobState},
    results::{JobResult, ResultQueue as _},
};
use relq_sqlite::{
    SqliteConfig, SqliteQueue,
    testing::{AtStep, Side, at_each_step},
};

use super::{claim, done, done_with, kept, push, rows, settle, unfinished};
use crate::fixture::{
    Folder, LONG, Notes, ask, eventually, file_of_child, many, open, raw, spawn,
};

/// So long that a call which waits was woken if it returns earlier.
const NEVER: Duration = Duration::from_secs(60 * 60);
/// How long a test waits for a call that returns soon.
const LIMIT: Duration = Duration::from_secs(60);

/// A clock whose sleeps end soon if they are no longer than this, and otherwise never.
#[derive(Debug)]
struct SleepsUpTo(Duration);

impl Clock for SleepsUpTo {
    fn now(&self) -> Timestamp {
        SystemClock.now()
    }

    fn elapsed(&self) -> Duration {
        SystemClock.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        match duration <= self.0 {
            true => SystemClock.sleep(duration.min(Duration::from_millis(10))),
            false => Box::pin(pending::<()>()),
        }
    }
}

/// Opens the queue with such a clock. It looks at the file of its own accord every hour.
async fn with_sleeps_up_to(folder: &Folder, longest: Duration) -> SqliteQueue {
    let environment = Environment::default().with_clock(Arc::new(SleepsUpTo(longest)));
    let config = folder.config().poll_interval(NEVER).environment(environment);
    open(config).await.unwrap()
}

/// Returns the record of the job of this delivery. `queue` waits for it while `end` ends
/// it. A call that nothing wakes looks again after some seconds, but no sleep ends here,
/// so a notification wakes this one.
async fn told_after(
    queue: &SqliteQueue,
    held: &Delivery,
    end: impl Future<Output = ()>,
) -> Option<JobResult> {
    let wait = tokio::time::timeout(LIMIT, queue.wait_result(held.job(), NEVER));
    let (told, ()) = tokio::join!(wait, end);
    told.expect("a notification wakes the call").unwrap()
}

async fn push_and_claim(queue: &SqliteQueue) -> Delivery {
    push(queue, kept("a").max_attempts(1.try_into().unwrap())).await;
    claim(queue).await
}

#[tokio::test]
async fn an_end_wakes_the_calls_of_all_handles_of_this_process() {
    let folder = Folder::new();
    let queue = with_sleeps_up_to(&folder, Duration::ZERO).await;
    let worker = with_sleeps_up_to(&folder, Duration::ZERO).await;
    let held = push_and_claim(&worker).await;

    let wait = || told_after(&queue, &held, async {});
    let own_wait = told_after(&worker, &held, async {
        // The two calls of the other handle look at the file before it stores this.
        queue.report_progress(&held.receipt, b"half").await.unwrap();
        settle(&worker, &held.receipt, done_with("42")).await;
    });
    let (one, two, own) = tokio::join!(wait(), wait(), own_wait);

    assert_eq!([one, two, own], [(); 3].map(|()| done("42")));
}

#[tokio::test]
async fn each_settlement_that_ends_a_job_wakes_the_calls() {
    let folder = Folder::new();
    let queue = with_sleeps_up_to(&folder, Duration::ZERO).await;
    let error = || "broken".to_owned();
    for (disposition, told) in [
        (Disposition::Done, JobResult::Done { result: "".into() }),
        (done_with("42"), JobResult::Done { result: "42".into() }),
        (Disposition::Discard, JobResult::Discarded),
        (Disposition::Dead { error: error() }, JobResult::Dead { error: error() }),
    ] {
        let held = push_and_claim(&queue).await;
        let end = settle(&queue, &held.receipt, disposition);
        assert_eq!(told_after(&queue, &held, end).await, Some(told));
    }
}

#[tokio::test]
async fn a_cancel_wakes_the_calls() {
    let folder = Folder::new();
    let queue = with_sleeps_up_to(&folder, Duration::ZERO).await;
    let held = push_and_claim(&queue).await;

    let told = told_after(&queue, &held, async {
        let cancelled = queue.cancel(held.job()).await.unwrap();
        assert_eq!(cancelled, Cancelled::Removed(JobState::Leased));
    })
    .await;

    assert_eq!(told, Some(JobResult::Cancelled { leader: None }));
}

/// One statement recovers many jobs, so it does not say which of them it has buried.
#[tokio::test]
async fn a_recovery_that_buries_a_job_wakes_the_calls() {
    let folder = Folder::new();
    let queue = with_sleeps_up_to(&folder, Duration::ZERO).await;
    let held = push_and_claim(&queue).await;
    let sql = "UPDATE jobs SET at = 1 WHERE state = 'leased'";
    assert_eq!(raw(&folder.file()).execute(sql, []).unwrap(), 1);

    let told = told_after(&queue, &held, async {
        assert_eq!(queue.recover(many(10)).await.unwrap().buried, 1);
    })
    .await;

    assert!(matches!(told, Some(JobResult::Dead { .. })), "{told:?}");
}

#[tokio::test]
async fn a_purge_wakes_the_calls() {
    let folder = Folder::new();
    let queue = with_sleeps_up_to(&folder, Duration::ZERO).await;
    let held = push_and_claim(&queue).await;

    let told = told_after(&queue, &held, async {
        assert_eq!(queue.purge().await.unwrap(), 1);
    })
    .await;

    assert_eq!(told, None);
    assert_eq!(rows(&folder), 0);
}

/// The task that looks for ends in other processes stops with the runtime of the call that
/// started it. Here it never looks, and the call looks itself after some seconds.
#[tokio::test]
async fn a_call_that_nothing_wakes_looks_again() {
    let folder = Folder::new();
    let queue = with_sleeps_up_to(&folder, Duration::from_secs(60)).await;
    let _child = spawn("results::waits::child_finishes_one", &folder.file());
    let opened = Notes::of(&folder.file(), "open");
    eventually("the child opens the file", || async { !opened.read().is_empty() })
        .await;
    let job = push(&queue, kept("a")).await;

    let found = tokio::time::timeout(LIMIT, queue.wait_result(&job, NEVER)).await;

    assert_eq!(found.expect("the call looks again").unwrap(), done("42"));
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

/// The task that looks for ends in other processes ends with its handle, which closes the
/// file, although the next look is an hour away.
#[tokio::test]
async fn a_handle_on_which_calls_have_waited_closes_its_file() {
    let folder = Folder::new();
    let queue = open(folder.config().poll_interval(NEVER)).await.unwrap();
    let job = push(&queue, kept("a")).await;
    let brief = Duration::from_millis(50);
    assert_eq!(queue.wait_result(&job, brief).await.unwrap(), unfinished(None));

    folder.close(queue).await;
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

/// The end of a job in another process is noticed, although another job of the queue, and the
/// job with the same id in another queue, have not ended (R19). No wait ends here by its own
/// look, which comes after seconds.
#[tokio::test]
async fn an_end_in_another_process_is_noticed_beside_jobs_that_go_on() {
    const BRIEFLY: Duration = Duration::from_millis(10);
    let discard = "DELETE FROM jobs WHERE id = 'a' AND queue = 1;
        DELETE FROM bodies WHERE job NOT IN (SELECT job FROM jobs);
        UPDATE results SET ended_as = 'discarded', until = 9000000000000
        WHERE id = 'a' AND queue = 1";
    let bury = "UPDATE jobs SET state = 'dead', turn = NULL, since = 1, reason = 'late'
        WHERE id = 'a' AND queue = 1";
    let dead = JobResult::Dead { error: "late".into() };
    for (end, told) in [(discard, JobResult::Discarded), (bury, dead)] {
        let folder = Folder::new();
        let clock = Arc::new(SleepsUpTo(BRIEFLY));
        let environment = Environment::default().with_clock(clock);
        let config = folder.config().poll_interval(BRIEFLY).environment(environment);
        let queue = open(config.clone()).await.unwrap();
        let name = QueueName::new("other").unwrap();
        let other = SqliteQueue::open(config, name).await.unwrap();
        for id in ["a", "b"].map(|id| JobId::new(id).unwrap()) {
            push(&queue, kept("own").id(id.clone())).await;
            push(&other, kept("other").id(id)).await;
        }

        let job = JobId::new("a").unwrap();
        let wait = tokio::time::timeout(LIMIT, queue.wait_result(&job, NEVER));
        let (found, ()) = tokio::join!(wait, async {
            // The call has read the result before its handle serves this one.
            queue.resume().await.unwrap();
            raw(&folder.file()).execute_batch(end).unwrap();
        });

        let found = found.expect("a look at the file ends the wait").unwrap();
        assert_eq!(found, Some(told), "R29");
    }
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

/// The looks for ends in other processes stop with the last call that waits, also if that
/// call is dropped (R22).
#[tokio::test]
async fn the_looks_end_with_the_last_call_that_waits() {
    let folder = Folder::new();
    let config = folder.config().poll_interval(Duration::from_millis(5));
    let (config, polls) = counting(config, "PRAGMA data_version");
    let queue = open(config).await.unwrap();
    let job = push(&queue, kept("a")).await;
    let polled = || polls.load(Ordering::Relaxed);
    tokio::select! {
        found = queue.wait_result(&job, LONG) => panic!("nobody ends the job: {found:?}"),
        () = eventually("the call looks", || async { polled() > 1 }) => {}
    }

    let is_quiet = || async {
        let before = polled();
        tokio::time::sleep(Duration::from_millis(200)).await;
        polled() == before
    };

    eventually("the looks end", is_quiet).await;
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
