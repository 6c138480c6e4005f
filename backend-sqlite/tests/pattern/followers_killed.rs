//! Kills and failures at each statement of the calls that move followers (R30).
//!
//! While a call runs, the file and its log are copied before and after each statement.
//! Each copy is what a process leaves that is killed there, because the operating system
//! keeps what it wrote. The copy is opened as a restarted process opens the file.

use std::{
    fs,
    sync::{Arc, Mutex, MutexGuard},
};

use relq_core::{
    Error, NewJob, Operator as _, Receipt, ReliableQueue as _, ReliableQueueExt as _,
    batch::{BatchId, BatchQueue as _, NewBatch},
    environment::Environment,
    error::Effect,
    operator::Selection,
};
use relq_sqlite::{
    Durability, SqliteConfig, SqliteQueue,
    testing::{AtStep, Side, at_each_step},
};

use crate::fixture::{Folder, LONG, many, open};
use crate::followers::{claim, id, named, push};

/// The result code of SQLite for a full disk.
const FULL: i32 = 13;

/// What happens at each statement of a queue.
#[derive(Default)]
struct Faults {
    /// Whether the file is copied now.
    is_copying: bool,
    copies: Vec<Folder>,
    /// How many statements succeed before one fails.
    until_failure: Option<usize>,
}

impl Faults {
    fn copy(&mut self, folder: &Folder) {
        let copy = Folder::new();
        for name in ["queue.db", "queue.db-wal"] {
            fs::copy(folder.path().join(name), copy.path().join(name)).unwrap();
        }
        self.copies.push(copy);
    }

    fn at_step(&mut self, side: Side, folder: &Folder) -> Result<(), i32> {
        if self.is_copying {
            self.copy(folder);
        }
        match self.until_failure.take() {
            Some(0) if side == Side::Before => Err(FULL),
            left => {
                let passed = usize::from(side == Side::Before);
                self.until_failure = left.map(|left| left.saturating_sub(passed));
                Ok(())
            }
        }
    }
}

/// A queue on a file, and what happens at its statements.
struct Scene {
    queue: SqliteQueue,
    faults: Arc<Mutex<Faults>>,
}

impl Scene {
    async fn new(page: u32) -> Self {
        let faults: Arc<Mutex<Faults>> = Arc::default();
        let (folder, shared) = (Folder::new(), Arc::clone(&faults));
        let config = config(&folder, page);
        let watch: AtStep =
            Arc::new(move |side, _| shared.lock().unwrap().at_step(side, &folder));
        Self { queue: open(at_each_step(config, watch)).await.unwrap(), faults }
    }

    fn faults(&self) -> MutexGuard<'_, Faults> {
        self.faults.lock().unwrap()
    }
}

fn config(folder: &Folder, page: u32) -> SqliteConfig {
    let environment = Environment::default().with_max_jobs_per_step(many(page));
    folder.config().environment(environment).durability(Durability::Normal)
}

/// The calls of a test: those before the call under test, and that call.
struct Calls<S, C> {
    /// The limit on the jobs of one step.
    page: u32,
    setup: S,
    call: C,
}

impl<S, C> Calls<S, C>
where
    S: AsyncFn(&SqliteQueue) -> Vec<Receipt>,
    C: AsyncFn(&SqliteQueue, &[Receipt]) -> Result<(), Error>,
{
    /// Kills the process before and after each statement of the call. After each kill the
    /// store has one of these figures once a recovery has nothing left to do: the first
    /// before the call, and the last after it.
    async fn kill(&self, allowed: &[&str]) {
        let scene = Scene::new(self.page).await;
        let held = (self.setup)(&scene.queue).await;
        scene.faults().is_copying = true;
        (self.call)(&scene.queue, &held).await.unwrap();
        scene.faults().is_copying = false;

        let copies = std::mem::take(&mut scene.faults().copies);
        let mut seen = Vec::new();
        for copy in copies {
            let queue = open(config(&copy, self.page)).await.unwrap();
            let figures = at_rest(&queue, self.page).await;
            assert!(allowed.contains(&&*figures), "{figures}, not one of {allowed:?}");
            seen.push(figures);
        }
        assert_eq!(seen.first().map(|it| &**it), allowed.first().copied());
        assert_eq!(seen.last().map(|it| &**it), allowed.last().copied());
    }

    /// Lets each statement of the call fail in turn. A failed call changes nothing, and
    /// can be repeated.
    async fn fail(&self, before: &str, after: &str) {
        let scene = Scene::new(self.page).await;
        let held = (self.setup)(&scene.queue).await;
        for statement in 0.. {
            scene.faults().until_failure = Some(statement);
            let called = (self.call)(&scene.queue, &held).await;
            scene.faults().until_failure = None;
            let Err(error) = called else {
                assert!(statement > 5, "its statements fail");
                break;
            };
            assert_eq!(error.effect(), Effect::No, "{error:?}");
            assert_eq!(figures(&scene.queue).await, before, "after {statement}");
        }
        assert_eq!(at_rest(&scene.queue, self.page).await, after);
    }
}

/// The figures of a queue in words, after an audit that finds no problem.
async fn figures(queue: &SqliteQueue) -> String {
    assert_eq!(queue.audit().await.unwrap().problems, [""; 0]);
    let stats = queue.stats().await.unwrap();
    let figures = [
        (stats.ready, "ready"),
        (stats.scheduled, "scheduled"),
        (stats.leased, "leased"),
        (stats.dead, "dead"),
        (stats.finished, "finished"),
        (stats.discarded, "discarded"),
        (stats.cancelled, "cancelled"),
    ];
    let figures = figures.into_iter().filter(|(count, _)| *count > 0);
    figures
        .map(|(count, word)| format!("{count} {word}"))
        .collect::<Vec<_>>()
        .join(", ")
}

/// The figures once a recovery has nothing left to do.
async fn at_rest(queue: &SqliteQueue, page: u32) -> String {
    figures(queue).await;
    while queue.recover(many(page)).await.unwrap().more {}
    figures(queue).await
}

/// A leased leader with three followers, one of them delayed, of which the first has one
/// itself.
async fn led(queue: &SqliteQueue) -> Vec<Receipt> {
    push(queue, &[named("a"), named("b").after(id("a"))]).await;
    push(queue, &[NewJob::new("c").after(id("b")), NewJob::new("d").after(id("a"))])
        .await;
    push(queue, &[NewJob::new("e").after(id("a")).delay(LONG)]).await;
    claim(queue, 1).await
}

#[tokio::test]
async fn a_push_of_followers_is_whole() {
    let calls = Calls {
        page: 100,
        setup: async |queue: &SqliteQueue| {
            push(queue, &[named("a")]).await;
            Vec::new()
        },
        call: async |queue: &SqliteQueue, _: &[Receipt]| {
            let jobs = [named("b").after(id("a")), NewJob::new("c").after(id("b"))];
            queue.push(&jobs, None).await.map(drop)
        },
    };
    let [before, after] = ["1 ready", "1 ready, 2 scheduled"];
    calls.kill(&[before, after]).await;
    calls.fail(before, after).await;
}

#[tokio::test]
async fn the_end_of_a_leader_and_the_release_of_its_followers_are_one_step() {
    let calls = Calls {
        page: 100,
        setup: led,
        call: async |queue: &SqliteQueue, held: &[Receipt]| {
            queue.ack(&held[0]).await.map(drop)
        },
    };
    let [before, after] = ["4 scheduled, 1 leased", "2 ready, 2 scheduled, 1 finished"];
    calls.kill(&[before, after]).await;
    calls.fail(before, after).await;
}

#[tokio::test]
async fn the_cancel_of_a_leader_cancels_its_followers() {
    let calls = Calls {
        page: 100,
        setup: led,
        call: async |queue: &SqliteQueue, _: &[Receipt]| {
            queue.cancel(&id("a")).await.map(drop)
        },
    };
    let [before, after] = ["4 scheduled, 1 leased", "5 cancelled"];
    calls.kill(&[before, after]).await;
    calls.fail(before, after).await;
}

/// The step that ends the leader cancels one follower only. Recoveries cancel the others.
#[tokio::test]
async fn a_discard_leaves_followers_to_recoveries() {
    let calls = Calls {
        page: 1,
        setup: led,
        call: async |queue: &SqliteQueue, held: &[Receipt]| {
            queue.discard(&held[0]).await.map(drop)
        },
    };
    let [before, after] = ["4 scheduled, 1 leased", "1 discarded, 4 cancelled"];
    calls.kill(&[before, after]).await;
    calls.fail(before, after).await;
}

#[tokio::test]
async fn a_recovery_that_cancels_followers_is_whole() {
    let calls = Calls {
        page: 1,
        setup: async |queue: &SqliteQueue| {
            let held = led(queue).await;
            queue.discard(&held[0]).await.unwrap();
            Vec::new()
        },
        call: async |queue: &SqliteQueue, _: &[Receipt]| {
            queue.recover(many(1)).await.map(drop)
        },
    };
    calls.kill(&["1 discarded, 4 cancelled"]).await;
    let before = "3 scheduled, 1 discarded, 1 cancelled";
    calls.fail(before, "1 discarded, 4 cancelled").await;
}

#[tokio::test]
async fn a_purge_of_a_dead_leader_cancels_its_followers() {
    let calls = Calls {
        page: 100,
        setup: async |queue: &SqliteQueue| {
            let held = led(queue).await;
            queue.bury(&held[0], "broken").await.unwrap();
            Vec::new()
        },
        call: async |queue: &SqliteQueue, _: &[Receipt]| {
            queue.purge_dead(&Selection::All).await.map(drop)
        },
    };
    let [before, after] = ["4 scheduled, 1 dead", "4 cancelled"];
    calls.kill(&[before, after]).await;
    calls.fail(before, after).await;
}

#[tokio::test]
async fn a_cancelled_batch_cancels_the_followers_of_its_pieces() {
    let batch = || BatchId::new("batch").unwrap();
    let calls = Calls {
        page: 100,
        setup: async |queue: &SqliteQueue| {
            queue.create(&NewBatch::new(batch())).await.unwrap();
            queue.add(&batch(), &["a", "b"].map(named), None).await.unwrap();
            push(queue, &["a", "b"].map(|it| NewJob::new("f").after(id(it)))).await;
            Vec::new()
        },
        call: async |queue: &SqliteQueue, _: &[Receipt]| {
            queue.cancel_batch(&batch()).await.map(drop)
        },
    };
    let [before, after] = ["2 ready, 2 scheduled", "4 cancelled"];
    calls.kill(&[before, after]).await;
    calls.fail(before, after).await;
}

/// A purge that is killed between two pages leaves no follower without its leader.
#[tokio::test]
async fn a_purge_removes_followers_before_their_leaders() {
    let calls = Calls {
        page: 2,
        setup: led,
        call: async |queue: &SqliteQueue, _: &[Receipt]| queue.purge().await.map(drop),
    };
    let steps = ["4 scheduled, 1 leased", "2 scheduled, 1 leased", "1 leased", ""];
    calls.kill(&steps).await;
}
