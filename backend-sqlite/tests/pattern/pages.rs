//! Tests of calls that handle several pages, each in a transaction of its own. If a later
//! one fails, the earlier pages stay committed, and the error says so (R21).

use std::{
    fs,
    num::NonZeroU16,
    path::Path,
    sync::{Arc, Mutex},
    time::Duration,
};

use relq_core::{
    ClaimRequest, Delivery, Disposition, Error, NewJob, Operator as _, QueueName,
    Receipt, ReliableQueue as _, ReliableQueueExt as _, Settlement, Stats,
    batch::{
        Added, BatchId, BatchOutcome, BatchQueue as _, BatchState, NewBatch, OnComplete,
    },
    environment::Environment,
    error::Effect,
    operator::{
        JobState, JobView, PeekRequest, RestoreQueue as _, Selection, StateDetail,
    },
    results::ResultQueue as _,
};
use relq_sqlite::{
    SqliteQueue,
    testing::{AtStep, Side, at_each_step},
};
use rusqlite::Connection;

use crate::fixture::{Folder, LONG, ask, eventually, many, open, raw};
use crate::followers::{claim, id, named, push};

const SHORT: Duration = Duration::from_millis(60);
/// The number of jobs that a call handles in its first page. `REST` more jobs are left
/// for its later pages.
const PAGE: u64 = Environment::MAX_JOBS_PER_STEP.get() as u64;
const REST: u64 = 300;

/// Acts as another process, whose connection locks the file or buries the leased jobs when a
/// test asks for it.
#[derive(Default)]
struct Other {
    /// Whether the queue under test is in a write transaction.
    sees_writing: bool,
    /// Whether the queue has begun to wait for the lock of this process.
    sees_waiting: bool,
    waiting: Option<Connection>,
    holding: Option<Connection>,
    burying: Option<Connection>,
}

impl Other {
    /// Is called before each statement of the queue.
    fn look_before(&mut self, sql: &str) {
        self.sees_waiting |= sql == "BEGIN IMMEDIATE" && self.holding.is_some();
    }

    /// Is called after each statement of the queue. Acts after the commit of a write
    /// transaction, but not after a read transaction.
    fn look_after(&mut self, sql: &str) {
        match sql {
            "BEGIN IMMEDIATE" => self.sees_writing = true,
            "COMMIT" if std::mem::take(&mut self.sees_writing) => {
                self.lock();
                self.bury();
            }
            _ => {}
        }
    }

    /// Buries the leased jobs, a moment after all other dead ones.
    fn bury(&mut self) {
        if let Some(conn) = self.burying.take() {
            let bury = "UPDATE jobs SET state = 'dead', reason = 'late', turn = NULL,
                          at = NULL, token = NULL, worker = NULL,
                          since = (SELECT max(since) + 1 FROM jobs AS dead
                                   WHERE state = 'dead' AND dead.queue = jobs.queue)
                        WHERE state = 'leased'";
            assert_eq!(conn.execute(bury, ()).unwrap(), 1);
        }
    }

    fn lock(&mut self) {
        if let Some(conn) = self.waiting.take() {
            conn.execute_batch("BEGIN IMMEDIATE").unwrap();
            self.holding = Some(conn);
        }
    }
}

fn watch(other: &Arc<Mutex<Other>>) -> AtStep {
    let other = Arc::clone(other);
    Arc::new(move |side, sql| {
        let mut other = other.lock().unwrap();
        match side {
            Side::Before => other.look_before(sql),
            Side::After => other.look_after(sql),
        }
        Ok(())
    })
}

/// An environment with steps of at most so many jobs.
pub(crate) fn steps_of(page: u32) -> Environment {
    Environment::default().with_max_jobs_per_step(many(page))
}

struct Scene {
    folder: Folder,
    queue: SqliteQueue,
    other: Arc<Mutex<Other>>,
}

impl Scene {
    async fn new() -> Self {
        Self::with(Environment::default(), SHORT).await
    }

    async fn with(environment: Environment, busy_timeout: Duration) -> Self {
        let (folder, other) = (Folder::new(), Arc::default());
        let config = folder.config().environment(environment);
        let config = at_each_step(config.busy_timeout(busy_timeout), watch(&other));
        let queue = open(config).await.unwrap();
        Self { folder, queue, other }
    }

    async fn push(&self) {
        for count in [PAGE, REST] {
            self.queue.push(&jobs(count), None).await.unwrap();
        }
    }

    async fn bury(&self) {
        self.push().await;
        let ask = ask("w").max(many(1000));
        loop {
            let taken = self.queue.claim(&ask).await.unwrap();
            if taken.is_empty() {
                return;
            }
            let dead = || Disposition::Dead { error: "no".to_owned() };
            let done: Vec<_> = taken
                .iter()
                .map(|it| Settlement::new(it.receipt.clone(), dead()))
                .collect();
            self.queue.settle(&done).await.unwrap();
        }
    }

    /// Arranges that the file is locked after the first page of the next call.
    fn lock_after_a_page(&self) {
        self.other.lock().unwrap().waiting = Some(raw(&self.folder.file()));
    }

    /// Arranges that the leased jobs are buried after the first page of the next call.
    fn bury_after_a_page(&self) {
        self.other.lock().unwrap().burying = Some(raw(&self.folder.file()));
    }

    fn lock_at_once(&self) {
        self.lock_after_a_page();
        self.other.lock().unwrap().lock();
    }

    /// Unlocks the file and returns the queue's stats.
    async fn free(&self) -> Stats {
        let holding = self.other.lock().unwrap().holding.take();
        holding.unwrap().execute_batch("COMMIT").unwrap();
        self.queue.stats().await.unwrap()
    }
}

/// Makes each write transaction fail but the first `left`, as on a disk that has become
/// read-only.
fn read_only_after(left: usize) -> AtStep {
    let left = Mutex::new(left);
    Arc::new(move |side, sql| {
        if matches!(side, Side::Before) && sql == "BEGIN IMMEDIATE" {
            let mut left = left.lock().unwrap();
            *left = left.checked_sub(1).ok_or(rusqlite::ffi::SQLITE_READONLY)?;
        }
        Ok(())
    })
}

/// R21: a later page fails with an error that does not heal. The call may have taken effect,
/// and says that it needs help.
#[tokio::test]
async fn a_page_that_needs_help_makes_the_call_need_it() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    for count in [PAGE, REST] {
        queue.push(&jobs(count), None).await.unwrap();
    }
    let held = queue.claim(&ask("w").max(many(1000))).await.unwrap();
    assert_eq!(held.len() as u64, PAGE + REST);
    let done = |one: &Delivery| Settlement::new(one.receipt.clone(), Disposition::Done);
    let done: Vec<_> = held.iter().map(done).collect();
    let config = at_each_step(folder.config(), read_only_after(1));
    let broken = open(config).await.unwrap();

    let error = broken.settle(&done).await.unwrap_err();

    assert_eq!(error.effect(), Effect::Maybe, "{}", error.full_message());
    assert!(error.needs_help(), "{}", error.full_message());
}

pub(crate) fn jobs(count: u64) -> Vec<NewJob> {
    (0..count).map(|_| NewJob::new("hello")).collect()
}

/// Asserts that the error says that the call may have taken effect, and that the file
/// was locked.
fn assert_in_part(error: &Error) {
    assert_eq!(error.effect(), Effect::Maybe, "{error:?}");
    let message = error.full_message();
    assert!(message.contains("another process holds the file's lock"), "{message}");
}

#[tokio::test]
async fn a_redrive_that_fails_later_may_have_happened() {
    let scene = Scene::new().await;
    scene.bury().await;
    scene.lock_after_a_page();

    let error = scene.queue.redrive(&Selection::All).await.unwrap_err();

    assert_in_part(&error);
    let stats = scene.free().await;
    assert_eq!((stats.ready, stats.dead), (PAGE, REST));
}

#[tokio::test]
async fn a_purge_of_the_dead_that_fails_later_may_have_happened() {
    let scene = Scene::new().await;
    scene.bury().await;
    scene.lock_after_a_page();

    let error = scene.queue.purge_dead(&Selection::All).await.unwrap_err();

    assert_in_part(&error);
    assert_eq!(scene.free().await.dead, REST);
}

#[tokio::test]
async fn a_purge_that_fails_later_may_have_happened() {
    let scene = Scene::new().await;
    scene.push().await;
    scene.lock_after_a_page();

    let error = scene.queue.purge().await.unwrap_err();

    assert_in_part(&error);
    assert_eq!(scene.free().await.ready, REST);
}

/// The first page of a purge ends the batches, and removes their completion jobs. So none takes
/// pieces or completes between two pages.
#[tokio::test]
async fn a_purge_that_fails_later_has_ended_the_batches() {
    let scene = Scene::new().await;
    let (queue, batch) = (&scene.queue, BatchId::new("b").unwrap());
    let completion = OnComplete::new(NewJob::new("complete"));
    let new = NewBatch::new(batch.clone()).on_complete(completion);
    queue.create(&new).await.unwrap();
    for count in [PAGE, REST] {
        queue.add(&batch, &jobs(count), None).await.unwrap();
    }
    scene.lock_after_a_page();

    let error = queue.purge().await.unwrap_err();

    assert_in_part(&error);
    assert_eq!(scene.free().await.ready, REST);
    let cancelled = BatchState::Completed(BatchOutcome::Cancelled);
    let status = queue.batch(&batch).await.unwrap();
    assert_eq!(status.map(|it| it.state), Some(cancelled), "B1");
    let late = queue.add(&batch, &jobs(1), None).await.unwrap();
    assert_eq!(late, Added::Closed(cancelled), "B1");
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
}

/// R29: the jobs that the purge has left still have their records, and the others have none.
#[tokio::test]
async fn a_purge_that_fails_later_leaves_jobs_with_their_records() {
    let scene = Scene::new().await;
    let queue = &scene.queue;
    let mut ids = Vec::new();
    for count in [PAGE, REST] {
        let kept = jobs(count).into_iter().map(|job| job.keep_result(LONG));
        let pushed = queue.push(&kept.collect::<Vec<_>>(), None).await.unwrap();
        ids.extend(pushed.iter().map(|one| one.job().clone()));
    }
    scene.lock_after_a_page();

    let error = queue.purge().await.unwrap_err();

    assert_in_part(&error);
    assert_eq!(scene.free().await.ready, REST);
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
    let told = queue.read_results(&ids).await.unwrap();
    assert_eq!(told.iter().flatten().count() as u64, REST);
    assert_eq!(queue.purge().await.unwrap(), REST);
    assert_eq!(queue.read_results(&ids).await.unwrap(), vec![None; ids.len()]);
}

/// A purge closes all batches before it removes jobs. So if it fails later, no batch completes
/// because its pieces are gone: recoveries drop the pieces that are left, and forget the
/// batches. A batch that had ended is kept as it was.
#[tokio::test]
async fn recoveries_forget_the_batches_of_a_purge_that_failed_later() {
    let scene = Scene::with(steps_of(2), SHORT).await;
    let queue = &scene.queue;
    let [done, first, second] =
        ["done", "first", "second"].map(|name| BatchId::new(name).unwrap());
    for batch in [&done, &first, &second] {
        let told = OnComplete::new(NewJob::new("complete"));
        let new = NewBatch::new(batch.clone()).on_complete(told);
        queue.create(&new).await.unwrap();
    }
    queue.seal(&done).await.unwrap();
    for held in claim(queue, 1).await {
        queue.ack(&held).await.unwrap();
    }
    // The page that the purge removes has all pieces of the first batch.
    for batch in [&first, &second] {
        let piece = |number| NewJob::new("piece").id(id(&format!("{batch} {number}")));
        queue.add(batch, &[0, 1].map(piece), None).await.unwrap();
        queue.seal(batch).await.unwrap();
    }
    let before = queue.batch(&done).await.unwrap().unwrap();
    assert_eq!(before.state, BatchState::Completed(BatchOutcome::Done));
    scene.lock_after_a_page();

    let error = queue.purge().await.unwrap_err();

    assert_in_part(&error);
    assert_eq!(scene.free().await.ready, 2);
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
    assert_eq!(claim(queue, 2).await, [], "no piece is delivered");
    while queue.recover(many(10)).await.unwrap().more {}
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.ready, stats.finished), (0, 1), "no batch has completed");
    let kept = queue.list_batches(None, many(10)).await.unwrap();
    assert_eq!(kept, [before], "the batch that had ended is kept");
}

#[tokio::test]
async fn a_cancel_that_fails_later_may_have_happened() {
    let scene = Scene::new().await;
    let batch = BatchId::new("b").unwrap();
    scene.queue.create(&NewBatch::new(batch.clone())).await.unwrap();
    for count in [PAGE, REST] {
        scene.queue.add(&batch, &jobs(count), None).await.unwrap();
    }
    scene.lock_after_a_page();

    let error = scene.queue.cancel_batch(&batch).await.unwrap_err();

    assert_in_part(&error);
    let stats = scene.free().await;
    assert_eq!((stats.ready, stats.cancelled), (REST, PAGE));
}

/// If a call fails before its first page, the error says that nothing happened.
#[tokio::test]
async fn a_call_that_fails_at_once_did_not_happen() {
    let scene = Scene::new().await;
    scene.push().await;
    scene.lock_at_once();

    let error = scene.queue.purge().await.unwrap_err();

    assert!(matches!(error, Error::Unavailable { .. }), "{error:?}");
    assert_eq!(error.effect(), Effect::No);
    assert_eq!(scene.free().await.ready, PAGE + REST);
}

/// A restore is done in pages, too (R34).
#[tokio::test]
async fn a_restore_that_fails_later_may_have_happened() {
    let scene = Scene::new().await;
    let view = |number| {
        let id = id(&format!("job {number}"));
        JobView::new(Some(id), "hello", StateDetail::Ready)
    };
    let views: Vec<_> = (0..PAGE + REST).map(view).collect();
    scene.lock_after_a_page();

    let error = scene.queue.restore(&views).await.unwrap_err();

    assert_in_part(&error);
    assert_eq!(scene.free().await.ready, PAGE);
}

/// A queue with steps of two jobs, and the acks of two leaders that have three followers
/// each. A step moves the followers of one leader (R30), and the file is locked after it.
async fn acks_of_two_leaders() -> (Scene, Vec<Settlement>) {
    let scene = Scene::with(steps_of(2), SHORT).await;
    push(&scene.queue, &["a", "b"].map(named)).await;
    for name in ["a", "b"] {
        push(&scene.queue, &vec![NewJob::new("follower").after(id(name)); 3]).await;
    }
    let held = claim(&scene.queue, 2).await.into_iter();
    let done = held.map(|receipt| Settlement::new(receipt, Disposition::Done));
    let done = done.collect();
    scene.lock_after_a_page();
    (scene, done)
}

#[tokio::test]
async fn a_settlement_that_fails_later_may_have_happened() {
    let (scene, done) = acks_of_two_leaders().await;

    let error = scene.queue.settle(&done).await.unwrap_err();

    assert_in_part(&error);
    assert_eq!(scene.free().await.finished, 1);
}

/// The first step of the settlements is one transaction with the claim.
#[tokio::test]
async fn a_settlement_beside_a_claim_that_fails_later_may_have_happened() {
    let (scene, done) = acks_of_two_leaders().await;

    let both = scene.queue.settle_and_claim(&done, &ask("w")).await;

    assert_in_part(&both.settled.unwrap_err());
    assert_eq!(both.claimed.unwrap().len(), 1);
    assert_eq!(scene.free().await.finished, 1);
}

/// Pushes five jobs to a queue with steps of two jobs, and claims them. The file is locked
/// after the first step of the next call.
async fn five_leases() -> (Scene, Vec<Receipt>) {
    let scene = Scene::with(steps_of(2), SHORT).await;
    scene.queue.push(&jobs(5), None).await.unwrap();
    let held = claim(&scene.queue, 5).await;
    assert_eq!(held.len(), 5);
    scene.lock_after_a_page();
    (scene, held)
}

#[tokio::test]
async fn a_heartbeat_that_fails_later_may_have_happened() {
    let (scene, held) = five_leases().await;

    let extended = scene.queue.extend(&ask("w").worker, &held, LONG).await;

    assert_in_part(&extended.unwrap_err());
    assert_eq!(scene.free().await.leased, 5);
}

#[tokio::test]
async fn a_release_that_fails_later_may_have_happened() {
    let (scene, _) = five_leases().await;

    let error = scene.queue.release_worker(&ask("w").worker).await.unwrap_err();

    assert_in_part(&error);
    assert_eq!(scene.free().await.leased, 3);
}

/// A claim whose later step fails returns the jobs that it has leased.
#[tokio::test]
async fn a_claim_that_fails_later_has_the_jobs_of_its_first_step() {
    let scene = Scene::with(steps_of(2), SHORT).await;
    scene.queue.push(&jobs(5), None).await.unwrap();
    scene.lock_after_a_page();

    let claimed = claim(&scene.queue, 5).await;

    assert_eq!(claimed.len(), 2);
    assert_eq!(scene.free().await.leased, 2);
}

/// R22: a claim that is dropped between two steps gives back the jobs of the first.
#[tokio::test]
async fn a_claim_that_is_dropped_between_two_steps_strands_nothing() {
    let scene = Scene::with(steps_of(2), LONG).await;
    scene.queue.push(&jobs(5), None).await.unwrap();
    scene.lock_after_a_page();

    let sees_waiting = || async { scene.other.lock().unwrap().sees_waiting };
    tokio::select! {
        claimed = claim(&scene.queue, 5) => panic!("{claimed:?}"),
        () = eventually("the second step waits", sees_waiting) => {}
    }
    scene.free().await;

    eventually("all jobs are ready", || async {
        scene.queue.stats().await.unwrap().ready == 5
    })
    .await;
}

/// A purge of all dead jobs leaves one that dies during the purge. A job of another queue of
/// the file died later.
#[tokio::test]
async fn a_job_that_dies_during_a_purge_of_the_dead_is_not_purged() {
    let scene = Scene::with(steps_of(2), SHORT).await;
    let name = QueueName::new("other").unwrap();
    let other = SqliteQueue::open(scene.folder.config(), name).await.unwrap();
    other.push(&jobs(1), None).await.unwrap();
    other.bury(&claim(&other, 1).await[0], "no").await.unwrap();
    let later = "UPDATE jobs SET since = 9000000000000 WHERE state = 'dead'";
    assert_eq!(raw(&scene.folder.file()).execute(later, ()).unwrap(), 1);
    scene.queue.push(&jobs(6), None).await.unwrap();
    for held in &claim(&scene.queue, 6).await[1..] {
        scene.queue.bury(held, "no").await.unwrap();
    }
    scene.bury_after_a_page();

    assert_eq!(scene.queue.purge_dead(&Selection::All).await.unwrap(), 5);

    assert_eq!(scene.queue.stats().await.unwrap().dead, 1);
    assert_eq!(other.stats().await.unwrap().dead, 1, "R19");
}

/// R23: a page of large jobs ends when their bytes reach a limit, and the next pages
/// show the other jobs.
#[tokio::test]
async fn a_page_of_large_jobs_is_short() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let sizes = [700_000, 300_000, 2_000_000, 1, 2];
    let jobs: Vec<_> = sizes.iter().map(|size| NewJob::new(vec![7; *size])).collect();
    queue.push(&jobs, None).await.unwrap();

    let mut ask = PeekRequest::new(JobState::Ready, many(100));
    let mut pages: Vec<Vec<usize>> = Vec::new();
    loop {
        let page = queue.peek(&ask).await.unwrap();
        pages.push(page.jobs.iter().map(|job| job.payload.len()).collect());
        ask.after = page.next;
        if ask.after.is_none() {
            break;
        }
    }

    assert_eq!(pages, [vec![700_000, 300_000], vec![2_000_000], vec![1, 2]]);
}

/// R21: a page reads no payload behind the one that ends it, in either order. If SQLite
/// sorted the rows of a page, it would read the payloads of as many jobs as were asked for.
#[tokio::test]
async fn a_page_reads_no_payload_behind_its_end() {
    let folder = Folder::new();
    let queue = folder.queue().await;
    let fills_a_page = |byte: u8| NewJob::new(vec![byte; ClaimRequest::MAX_BYTES]);
    let jobs: Vec<_> = (1..=5).map(fills_a_page).collect();
    queue.push(&jobs, None).await.unwrap();
    folder.close(queue).await;
    damage_payload(&folder.file(), 3);
    let queue = folder.queue().await;

    let served = PeekRequest::new(JobState::Ready, many(100));
    for (ask, first) in [(served.clone(), 1), (served.newest_first(), 5)] {
        let page = queue.peek(&ask).await.unwrap();

        assert_eq!(page.jobs.len(), 1);
        assert_eq!(page.jobs[0].payload[0], first);
        // The second job of the next page is the damaged one, so that page cannot be read.
        let error = queue.peek(&ask.after(page.next.unwrap())).await.unwrap_err();
        assert!(matches!(error, Error::Unusable { .. }), "{error:?}");
    }
}

/// Damages the payload that consists of this byte, in a file without a log. The first four
/// bytes of each page of a long payload are the number of the next page.
fn damage_payload(file: &Path, byte: u8) {
    let mut bytes = fs::read(file).unwrap();
    for page in bytes.chunks_exact_mut(4096) {
        if page[4..].iter().all(|it| *it == byte) {
            page[..4].fill(0xFF);
        }
    }
    fs::write(file, bytes).unwrap();
}

/// B5: a recovery buries the last piece of one batch and drops that of another, which is being
/// cancelled. Both batches complete in this step.
#[tokio::test]
async fn a_recovery_completes_each_batch_whose_last_piece_it_ends() {
    let folder = Folder::new();
    let queue = open(folder.config().environment(steps_of(1))).await.unwrap();
    let [buried, dropped] = ["buried", "dropped"].map(|id| BatchId::new(id).unwrap());
    for batch in [&buried, &dropped] {
        queue.create(&NewBatch::new(batch.clone())).await.unwrap();
        let piece = NewJob::new("piece").max_attempts(NonZeroU16::MIN);
        queue.add(batch, &[piece], None).await.unwrap();
        queue.seal(batch).await.unwrap();
    }
    let ask = ClaimRequest::new(ask("w").worker, SHORT);
    assert_eq!(queue.claim(&ask).await.unwrap().len(), 1);
    // Another process has begun to cancel the other batch, and has died.
    let cancel = "UPDATE batches SET state = 'cancelling' WHERE id = 'dropped'";
    assert_eq!(raw(&folder.file()).execute(cancel, ()).unwrap(), 1);
    tokio::time::sleep(2 * SHORT).await;

    let recovered = queue.recover(many(1)).await.unwrap();

    assert_eq!(recovered.buried, 1);
    for (batch, outcome) in
        [(buried, BatchOutcome::Failed), (dropped, BatchOutcome::Cancelled)]
    {
        let status = queue.batch(&batch).await.unwrap().unwrap();
        assert_eq!(status.state, BatchState::Completed(outcome), "B5: {batch}");
    }
}
