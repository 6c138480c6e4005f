//! Kills and failures at each statement of the calls that move followers (R30).
//!
//! While a call runs, the file and its log are copied before and after each statement that
//! changes them. Each copy is what a process leaves that is killed there, because the operating system
//! keeps what it wrote. The copy is opened as a restarted process opens the file.

use std::{
    fs,
    sync::{Arc, Mutex, MutexGuard},
    time::Duration,
};

use relq_core::{
    Error, NewJob, Operator as _, Receipt, ReliableQueue as _, ReliableQueueExt as _,
    batch::{BatchId, BatchQueue as _, NewBatch},
    environment::Environment,
    error::Effect,
    operator::Selection,
    unique::UniqueKey,
};
use relq_sqlite::{
    Durability, SqliteConfig, SqliteQueue,
    testing::{AtStep, Side, at_each_step},
};

use crate::fixture::{Folder, LONG, eventually, many, open};
use crate::followers::{claim, id, named, push};

/// The names of the file and of its log.
const FILES: [&str; 2] = ["queue.db", "queue.db-wal"];

/// The result code of SQLite for a full disk.
const FULL: i32 = 13;

/// The fault that a test injects at the statements of a queue.
#[derive(Default)]
struct Faults {
    /// Whether the file is copied now.
    is_copying: bool,
    /// The file and its log, once for each state that they had.
    copies: Vec<[Vec<u8>; 2]>,
    /// How many statements of a write transaction succeed before one fails.
    until_failure: Option<usize>,
    /// Whether such a transaction has begun.
    is_writing: bool,
}

impl Faults {
    /// Copies the files, unless they are as they were at the last statement.
    fn copy(&mut self, folder: &Folder) {
        let files = FILES.map(|name| fs::read(folder.path().join(name)).unwrap());
        if self.copies.last() != Some(&files) {
            self.copies.push(files);
        }
    }

    fn at_step(&mut self, side: Side, sql: &str, folder: &Folder) -> Result<(), i32> {
        if self.is_copying {
            self.copy(folder);
        }
        self.is_writing |= sql == "BEGIN IMMEDIATE";
        if side == Side::After || !self.is_writing {
            return Ok(());
        }
        let left = self.until_failure.take();
        self.until_failure = left.and_then(|left| left.checked_sub(1));
        if left == Some(0) { Err(FULL) } else { Ok(()) }
    }

    fn fail_after(&mut self, statements: usize) {
        (self.is_writing, self.until_failure) = (false, Some(statements));
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
        let watch: AtStep = Arc::new(move |side, sql| {
            shared.lock().unwrap().at_step(side, sql, &folder)
        });
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
            let folder = Folder::new();
            for (name, bytes) in FILES.iter().zip(copy) {
                fs::write(folder.path().join(name), bytes).unwrap();
            }
            let queue = open(config(&folder, self.page)).await.unwrap();
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
            scene.faults().fail_after(statement);
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

fn key() -> UniqueKey {
    UniqueKey::new("key").unwrap()
}

/// A leader with two followers. The second one holds a unique key, and has expired.
async fn with_an_expired_follower(queue: &SqliteQueue) {
    const BRIEF: Duration = Duration::from_millis(1);
    let follower = NewJob::new("c").after(id("a")).unique(key()).expires_in(BRIEF);
    push(queue, &[named("a"), NewJob::new("b").after(id("a")), follower]).await;
    let environment = Environment::default();
    let now = || environment.clock().now();
    let expiry = now().plus(BRIEF);
    eventually("it has expired", || async { now() > expiry }).await;
}

async fn take_its_key(queue: &SqliteQueue, _: &[Receipt]) -> Result<(), Error> {
    queue.push(&[NewJob::new("new").unique(key())], None).await.map(drop)
}

#[tokio::test]
async fn an_expired_follower_loses_its_key_in_the_push_that_takes_it() {
    let calls = Calls {
        page: 100,
        setup: async |queue: &SqliteQueue| {
            with_an_expired_follower(queue).await;
            Vec::new()
        },
        call: take_its_key,
    };
    let [before, after] = ["1 ready, 2 scheduled", "2 ready, 2 scheduled"];
    calls.kill(&[before, after]).await;
    calls.fail(before, after).await;
}

/// A recovery cancels it all the same.
#[tokio::test]
async fn an_expired_orphan_loses_its_key_in_the_push_that_takes_it() {
    let calls = Calls {
        page: 1,
        setup: async |queue: &SqliteQueue| {
            with_an_expired_follower(queue).await;
            queue.cancel(&id("a")).await.unwrap();
            Vec::new()
        },
        call: take_its_key,
    };
    calls.kill(&["3 cancelled", "1 ready, 3 cancelled"]).await;
    calls.fail("1 scheduled, 2 cancelled", "1 ready, 3 cancelled").await;
}

#[tokio::test]
async fn a_cancel_of_a_follower_forgets_its_leader() {
    let calls = Calls {
        page: 100,
        setup: led,
        call: async |queue: &SqliteQueue, _: &[Receipt]| {
            queue.cancel(&id("b")).await.map(drop)
        },
    };
    let [before, after] =
        ["4 scheduled, 1 leased", "2 scheduled, 1 leased, 2 cancelled"];
    calls.kill(&[before, after]).await;
    calls.fail(before, after).await;
}
