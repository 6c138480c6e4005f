//! Tests that fill the disk at each statement of a call that changes a job or a report.

use std::{
    future::Future,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
};

use relq_core::{
    Error, NewJob, Operator as _, ReliableQueue as _, WorkerId,
    batch::BatchQueue as _,
    operator::{InspectQueue as _, RunNow, WorkerReport},
};
use relq_sqlite::{
    SqliteQueue,
    testing::{AtStep, Side, at_each_step},
};

use super::{add, id, named};
use crate::fixture::{Folder, LONG, ask, many, open};

/// The result code of SQLite for a full disk.
const FULL: i32 = 13;
/// No statement fails.
const NEVER: usize = usize::MAX;

/// A queue of which one statement fails.
struct Scene {
    /// How many statements are executed before the one that fails.
    left: Arc<AtomicUsize>,
    queue: SqliteQueue,
    _folder: Folder,
}

/// Fails one statement of a write transaction, before it is executed. What a call reads
/// before its transaction is not counted: if that fails to end, the call goes on.
fn fails_after(left: &Arc<AtomicUsize>) -> AtStep {
    let left = Arc::clone(left);
    let is_writing = AtomicBool::new(false);
    Arc::new(move |side, sql| {
        match sql {
            "BEGIN IMMEDIATE" => is_writing.store(true, Ordering::SeqCst),
            "BEGIN" => is_writing.store(false, Ordering::SeqCst),
            _ => {}
        }
        let is_last = side == Side::Before
            && is_writing.load(Ordering::SeqCst)
            && left.load(Ordering::SeqCst) != NEVER
            && left.fetch_sub(1, Ordering::SeqCst) == 0;
        if is_last { Err(FULL) } else { Ok(()) }
    })
}

impl Scene {
    async fn new() -> Self {
        let (folder, left) = (Folder::new(), Arc::new(AtomicUsize::new(NEVER)));
        let config = at_each_step(folder.config(), fails_after(&left));
        Self { left, queue: open(config).await.unwrap(), _folder: folder }
    }

    /// Makes a call in which each statement fails in turn. Asserts that a call that fails
    /// leaves `state` as it was. Returns the result of the first call in which no
    /// statement failed.
    async fn at_each<'a, T, S, C, R>(
        &'a self,
        call: impl Fn(&'a SqliteQueue) -> C,
        state: impl Fn(&'a SqliteQueue) -> R,
    ) -> T
    where
        C: Future<Output = Result<T, Error>>,
        R: Future<Output = S>,
        S: PartialEq + std::fmt::Debug,
    {
        let before = state(&self.queue).await;
        for at in 0.. {
            self.left.store(at, Ordering::SeqCst);
            let called = call(&self.queue).await;
            self.left.store(NEVER, Ordering::SeqCst);
            match called {
                Ok(done) => {
                    assert!(at >= 3, "{at} statements in a transaction");
                    return done;
                }
                Err(error) => {
                    assert!(matches!(error, Error::Full { .. }), "at {at}: {error:?}");
                    assert_eq!(state(&self.queue).await, before, "at {at}");
                }
            }
        }
        unreachable!("the loop is endless")
    }
}

/// R3, R32: a job is run now completely or not at all.
#[tokio::test]
async fn a_job_is_run_now_as_a_whole() {
    let scene = Scene::new().await;
    let queue = &scene.queue;
    let later = |name| named(name).delay(LONG);
    queue.push(&[later("a"), later("b")], None).await.unwrap();
    let job = id("a");

    let stats = async |queue: &SqliteQueue| {
        let stats = queue.stats().await.unwrap();
        (stats.scheduled, stats.ready, queue.audit().await.unwrap())
    };
    let ran = scene.at_each(|queue| queue.run_now(&job), stats).await;

    assert_eq!(ran, RunNow::Ready);
    let stats = queue.stats().await.unwrap();
    assert_eq!((stats.scheduled, stats.ready), (1, 1));
}

/// B2, R32: a piece is run now and counted completely or not at all.
#[tokio::test]
async fn a_piece_is_run_now_as_a_whole() {
    let scene = Scene::new().await;
    let queue = &scene.queue;
    let batch = add(queue, "b", &[named("piece"), NewJob::new("other")]).await;
    let held = queue.claim(&ask("w")).await.unwrap().pop().unwrap();
    let retry = relq_core::Disposition::Retry { after: LONG, error: "no".to_owned() };
    let done = relq_core::Settlement::new(held.receipt, retry);
    queue.settle(&[done]).await.unwrap();
    let (job, batch) = (id("piece"), &batch);

    let status = async |queue: &SqliteQueue| {
        let status = queue.batch(batch).await.unwrap();
        (status, queue.audit().await.unwrap())
    };
    let ran = scene.at_each(|queue| queue.run_now(&job), status).await;

    assert_eq!(ran, RunNow::Ready);
    assert_eq!(queue.stats().await.unwrap().ready, 2);
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
}

/// R33: a report is stored completely or not at all, and so is its removal.
#[tokio::test]
async fn a_report_is_stored_as_a_whole() {
    let scene = Scene::new().await;
    let worker = WorkerId::new("w").unwrap();
    let listed =
        async |queue: &SqliteQueue| queue.workers(None, many(9)).await.unwrap().workers;
    let first = WorkerReport::new(worker.clone(), many(1));
    let second = WorkerReport::new(worker.clone(), many(2));

    scene.at_each(|queue| queue.report_worker(&first), listed).await;
    assert_eq!(listed(&scene.queue).await[0].slots, many(1));
    scene.at_each(|queue| queue.report_worker(&second), listed).await;
    assert_eq!(listed(&scene.queue).await[0].slots, many(2));
    scene.at_each(|queue| queue.release_worker(&worker), listed).await;
    assert_eq!(listed(&scene.queue).await, []);
}
