//! Tests of calls that handle several pages and fail at a later one. The earlier pages
//! stay committed, and the error says so (R21).

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use relq_core::{
    Disposition, Error, NewJob, Operator as _, ReliableQueue as _, Settlement, Stats,
    batch::{BatchId, BatchQueue as _, NewBatch},
    environment::Environment,
    error::Effect,
    operator::{JobState, PeekRequest, Selection},
    results::ResultQueue as _,
};
use relq_sqlite::{
    SqliteQueue,
    testing::{AtStep, Side, at_each_step},
};
use rusqlite::Connection;

use crate::fixture::{Folder, LONG, ask, many, open, raw};

const SHORT: Duration = Duration::from_millis(60);
/// The number of jobs that a call handles in its first page. `REST` more jobs are left
/// for its later pages.
const PAGE: u64 = Environment::MAX_JOBS_PER_STEP.get() as u64;
const REST: u64 = 300;

/// Acts as another process, whose connection locks the file when a test asks for it.
#[derive(Default)]
struct Other {
    /// Whether the queue under test is in a write transaction.
    sees_writing: bool,
    waiting: Option<Connection>,
    holding: Option<Connection>,
}

impl Other {
    /// Is called with each statement of the queue. Locks the file after the commit of a
    /// write transaction, but not after a read transaction.
    fn look(&mut self, sql: &str) {
        match sql {
            "BEGIN IMMEDIATE" => self.sees_writing = true,
            "COMMIT" if std::mem::take(&mut self.sees_writing) => self.lock(),
            _ => {}
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
        if side == Side::After {
            other.lock().unwrap().look(sql);
        }
        Ok(())
    })
}

struct Scene {
    folder: Folder,
    queue: SqliteQueue,
    other: Arc<Mutex<Other>>,
}

impl Scene {
    async fn new() -> Self {
        let (folder, other) = (Folder::new(), Arc::default());
        let config = at_each_step(folder.config().busy_timeout(SHORT), watch(&other));
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

fn jobs(count: u64) -> Vec<NewJob> {
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
