//! Waits without a claim (`wait_for_jobs`) that follow a claim which found no job, and waits
//! for a batch. They look at the file only after an hour, so what ends them is a notification
//! or a due time.

use std::{
    pin::{Pin, pin},
    sync::{
        Arc, Mutex,
        atomic::{AtomicBool, Ordering::SeqCst},
        mpsc::{self, Sender},
    },
    time::Duration,
};

use futures_util::FutureExt as _;
use relq_core::{
    Disposition, JobId, NewJob, Operator as _, QueueName, ReliableQueue as _,
    ReliableQueueExt as _, Settlement,
    batch::{BatchId, BatchOutcome, BatchQueue as _, NewBatch, OnComplete},
    environment::{Clock, Environment, SystemClock, Timestamp},
    operator::{InspectQueue as _, JobView, RestoreQueue as _, RunNow, StateDetail},
    outcome::{Extended, Pushed},
    unique::{OnDuplicate, UniqueKey},
};
use relq_sqlite::{
    SqliteQueue,
    testing::{AtStep, Side, at_each_step},
};
use tokio::time::timeout;

use crate::fixture::{Folder, ask, eventually, open, raw};

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

/// The clock of a machine. Its time of day can be set, and its other clock goes on.
#[derive(Debug, Default)]
struct SetClock(Mutex<Duration>);

impl Clock for SetClock {
    fn now(&self) -> Timestamp {
        SystemClock.now().plus(*self.0.lock().unwrap())
    }

    fn elapsed(&self) -> Duration {
        SystemClock.elapsed()
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        SystemClock.sleep(duration)
    }
}

/// A claim finds the queue empty, and a job is due in an hour. Returns the clock, too.
async fn empty_for_an_hour(folder: &Folder) -> (SqliteQueue, Arc<SetClock>) {
    let clock = Arc::new(SetClock::default());
    let environment = Environment::default().with_clock(clock.clone());
    let queue = open(folder.config().environment(environment)).await.unwrap();
    queue.push_one(NewJob::new("job").delay(HOUR)).await.unwrap();
    assert_eq!(queue.claim(&ask("worker")).await.unwrap(), []);
    (queue, clock)
}

/// R14: a job is due by the time of day. If the clock is set forward during a wait, the wait
/// ends with it.
#[tokio::test]
async fn a_clock_that_is_set_forward_ends_the_wait_for_a_due_job() {
    let folder = Folder::new();
    let (queue, clock) = empty_for_an_hour(&folder).await;

    let mut waiting = pin!(queue.wait_for_jobs(2 * HOUR));
    assert!(timeout(Duration::from_millis(100), &mut waiting).await.is_err());
    *clock.0.lock().unwrap() = HOUR;

    timeout(LIMIT, waiting).await.expect("the job is due").unwrap();
    assert_eq!(queue.claim(&ask("worker")).await.unwrap().len(), 1);
}

/// R14: so does a wait if the clock was set forward after the claim before it.
#[tokio::test]
async fn a_clock_that_is_set_forward_before_the_wait_ends_it() {
    let folder = Folder::new();
    let (queue, clock) = empty_for_an_hour(&folder).await;

    *clock.0.lock().unwrap() = HOUR;

    wait_ends(&queue, "the job is due").await;
    assert_eq!(queue.claim(&ask("worker")).await.unwrap().len(), 1);
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

/// Stops a queue after the commit of a write transaction.
struct StopAtCommit {
    /// Whether the queue stops at its next commit.
    is_set: Arc<AtomicBool>,
    has_stopped: Arc<AtomicBool>,
    /// Lets the queue continue.
    release: Sender<()>,
}

impl StopAtCommit {
    /// Returns the hook for the queue, which does not stop before `is_set` is true.
    fn new() -> (Self, AtStep) {
        let (release, released) = mpsc::channel();
        let (is_set, has_stopped) = (Arc::default(), Arc::default());
        let stop = Self { is_set, has_stopped, release };
        let (is_set, has_stopped) =
            (Arc::clone(&stop.is_set), Arc::clone(&stop.has_stopped));
        let released = Mutex::new(released);
        let hook: AtStep = Arc::new(move |side, sql| {
            if side == Side::After && sql == "COMMIT" && is_set.swap(false, SeqCst) {
                has_stopped.store(true, SeqCst);
                // If the test has failed meanwhile, the queue continues as well.
                released.lock().unwrap().recv().ok();
            }
            Ok(())
        });
        (stop, hook)
    }
}

/// R21: so does a push that comes after the commit of the two and before their results. The
/// claim did not see the job, so only the notification tells of it.
#[tokio::test]
async fn a_push_before_the_result_of_the_settlement_ends_the_wait() {
    let (folder, (stop, hook)) = (Folder::new(), StopAtCommit::new());
    let config = folder.config().poll_interval(HOUR);
    let queue = open(at_each_step(config, hook)).await.unwrap();
    let other = folder.queue().await;
    queue.push_one("first".into()).await.unwrap();
    let held = queue.claim_one(&ask("worker")).await.unwrap().unwrap();
    let done = [Settlement::new(held.receipt, Disposition::Done)];
    stop.is_set.store(true, SeqCst);

    let asked = ask("worker");
    let (both, ()) = tokio::join!(queue.settle_and_claim(&done, &asked), async {
        let has_stopped = || async { stop.has_stopped.load(SeqCst) };
        eventually("the settlement is committed", has_stopped).await;
        other.push_one("second".into()).await.unwrap();
        stop.release.send(()).unwrap();
    });

    assert_eq!(both.claimed.unwrap(), []);
    wait_ends(&queue, "the push ends the wait").await;
}

/// B5: a batch of another queue completes, and its completion job is pushed to this queue.
#[tokio::test]
async fn a_completion_job_of_a_batch_of_another_queue_ends_the_wait() {
    let folder = Folder::new();
    let queue = empty(&folder).await;
    let elsewhere = QueueName::new("elsewhere").unwrap();
    let other = SqliteQueue::open(folder.config(), elsewhere).await.unwrap();
    let batch = BatchId::new("batch").unwrap();
    let here =
        OnComplete::new("completed".into()).queue(QueueName::new("jobs").unwrap());
    other.create(&NewBatch::new(batch.clone()).on_complete(here)).await.unwrap();

    other.seal(&batch).await.unwrap();

    wait_ends(&queue, "the completion job ends the wait").await;
    assert_eq!(queue.claim(&ask("worker")).await.unwrap().len(), 1);
}

/// R32: a job that is run before its time ends the wait.
#[tokio::test]
async fn a_job_that_is_run_now_ends_the_wait() {
    let folder = Folder::new();
    let queue = open(folder.config().poll_interval(HOUR)).await.unwrap();
    let id = JobId::new("later").unwrap();
    let later = NewJob::new("later").id(id.clone()).delay(HOUR);
    queue.push_one(later).await.unwrap();
    assert_eq!(queue.claim(&ask("worker")).await.unwrap(), []);

    assert_eq!(queue.run_now(&id).await.unwrap(), RunNow::Ready);

    wait_ends(&queue, "the job ends the wait").await;
}

/// R34: a ready job that is restored ends the wait.
#[tokio::test]
async fn a_restored_job_ends_the_wait() {
    let folder = Folder::new();
    let queue = empty(&folder).await;
    let id = JobId::new("restored").unwrap();
    let job = JobView::new(Some(id.clone()), "restored", StateDetail::Ready);

    assert_eq!(queue.restore(&[job]).await.unwrap(), [Pushed::Stored(id)]);

    wait_ends(&queue, "the job ends the wait").await;
}

/// R16: a push that stores nothing ends the wait, too, if it makes the job that holds the
/// unique key due.
#[tokio::test]
async fn a_push_that_makes_another_job_due_ends_the_wait() {
    let folder = Folder::new();
    let queue = open(folder.config().poll_interval(HOUR)).await.unwrap();
    let key = || UniqueKey::new("key").unwrap();
    queue.push_one(NewJob::new("later").unique(key()).delay(HOUR)).await.unwrap();
    assert_eq!(queue.claim(&ask("worker")).await.unwrap(), []);

    let now = NewJob::new("now").unique_or(key(), OnDuplicate::Reschedule);
    let pushed = queue.push_one(now).await.unwrap();

    assert!(matches!(pushed, Pushed::Duplicate { .. }), "{pushed:?}");
    wait_ends(&queue, "the job that is due ends the wait").await;
    assert_eq!(queue.claim(&ask("worker")).await.unwrap().len(), 1);
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

/// Opens a queue that executes no statement while the returned lock is held.
async fn behind_a_gate(folder: &Folder) -> (SqliteQueue, Arc<Mutex<()>>) {
    let gate = Arc::new(Mutex::new(()));
    let passed = Arc::clone(&gate);
    let watch: AtStep = Arc::new(move |_: Side, _: &str| {
        drop(passed.lock().unwrap());
        Ok(())
    });
    let config = folder.config().poll_interval(HOUR);
    (open(at_each_step(config, watch)).await.unwrap(), gate)
}

/// R21: a push that comes after the look of a waiting claim, and before the claim learns
/// that it found nothing, ends its wait. The push is one of the same handle, whose own
/// connection does not show it as a change of the file.
#[tokio::test]
async fn a_push_between_the_look_of_a_claim_and_its_wait_ends_it() {
    let folder = Folder::new();
    let (queue, gate) = behind_a_gate(&folder).await;
    let asked = ask("worker").wait(HOUR);

    let claiming = {
        let _closed = gate.lock().unwrap();
        let mut claiming = queue.claim(&asked);
        assert!((&mut claiming).now_or_never().is_none(), "its look is not answered");
        claiming
    };
    // The look is done before the push, and the claim learns of it only after both.
    queue.push_one("job".into()).await.unwrap();
    let claimed = timeout(LIMIT, claiming).await.expect("R21: the push ends the wait");

    assert_eq!(claimed.unwrap().len(), 1);
}

/// R23: a job that is due ends no wait while its queue is paused. Otherwise the claim would
/// look again and again until the resume.
#[tokio::test]
async fn a_due_job_of_a_paused_queue_ends_no_wait() {
    let folder = Folder::new();
    let queue = open(folder.config().poll_interval(HOUR)).await.unwrap();
    queue.push_one(NewJob::new("due").delay(HOUR)).await.unwrap();
    queue.pause().await.unwrap();
    let sql = "UPDATE jobs SET at = 1 WHERE state = 'scheduled'";
    assert_eq!(raw(&folder.file()).execute(sql, ()).unwrap(), 1);
    assert_eq!(queue.claim(&ask("worker")).await.unwrap(), []);

    let quiet = timeout(Duration::from_millis(200), queue.wait_for_jobs(HOUR)).await;

    assert!(quiet.is_err(), "R23: the wait ends, and the queue is paused");
    queue.resume().await.unwrap();
    assert_eq!(queue.claim(&ask("worker")).await.unwrap().len(), 1, "R14: it is due");
}

/// B5: a call looks at the batch and then waits. If the batch completes in between, the wait
/// ends at once.
#[tokio::test]
async fn a_completion_between_the_look_and_the_wait_ends_it() {
    let folder = Folder::new();
    let (queue, gate) = behind_a_gate(&folder).await;
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

/// R6: a queue that a worker opens for its heartbeats has a connection and a thread of its
/// own. So heartbeats go through while a call of the worker takes long.
#[tokio::test]
async fn another_handle_does_not_wait_for_the_calls_of_the_first() {
    let (folder, (stop, hook)) = (Folder::new(), StopAtCommit::new());
    let queue = open(at_each_step(folder.config(), hook)).await.unwrap();
    let heartbeats = queue.open_another().await.unwrap();
    queue.push_one("job".into()).await.unwrap();
    let held = queue.claim_one(&ask("worker")).await.unwrap().unwrap();
    stop.is_set.store(true, SeqCst);

    let (pushed, extended) = tokio::join!(queue.push_one("long call".into()), async {
        let has_stopped = || async { stop.has_stopped.load(SeqCst) };
        eventually("the call has stopped", has_stopped).await;
        let (worker, held) = (ask("worker").worker, [held.receipt]);
        let extended = timeout(LIMIT, heartbeats.extend(&worker, &held, HOUR)).await;
        stop.release.send(()).unwrap();
        extended
    });

    pushed.unwrap();
    let extended = extended.expect("the heartbeat does not wait for the long call");
    let extended = extended.unwrap();
    assert!(matches!(extended[..], [Extended::Until(_)]), "{extended:?}");
}
