//! A store in a folder, in which each statement of each actor waits.
//!
//! Each actor opens the store for itself, with its own connections, as a process
//! does. Its thread waits before each statement, and before the beginning and the end of
//! each transaction.
//!
//! ```text
//!  worker a   BEGIN IMMEDIATE . . . . COMMIT
//!  reaper     BEGIN . . COMMIT                 BEGIN IMMEDIATE . . . COMMIT
//!                                              ^ cannot run before a's COMMIT
//! ```
//!
//! **Locks.** A step that begins to write cannot run while another transaction writes:
//! the search does not choose it. So no actor waits for a lock, and no real time passes.
//!
//! **Death.** The actor's thread unwinds from the point at which it waits and drops its
//! connection. SQLite rolls the transaction back, and the leases stay. A killed process
//! leaves the same to the others, as [`processes`](crate::sweep::processes) shows with
//! processes that are killed.
//!
//! **What is left out, and why nothing is missed.** A statement inside of a transaction
//! reads what was committed when the transaction began, and changes nothing that another
//! connection sees before the commit. So its result does not depend on when it runs, and
//! no other step's result depends on it. It is run at once, and the search decides only
//! about beginnings and ends. A death inside of a transaction leaves what a death before its
//! end leaves, and in between no actor can see a difference. This holds only if the
//! backend reads the clock at no statement inside of a transaction: a run in which it
//! does fails (INDEPENDENT).
//!
//! **State.** What an actor does next depends on its program, the seed of its random
//! numbers, its readings of the clock, and the results of its statements. So two actors
//! are in the same state if they took the same steps with the same results and read the
//! same times, and if the transactions in which they are began with the same data. The
//! changes of such a transaction follow from its steps.

use std::{
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use relq_core::{
    Queue, QueueName,
    environment::{Clock, Environment, Timestamp},
};
use tempfile::TempDir;

use super::{SteppedStore, parking::Parking, transactions::Digest};
use crate::{
    proxy::{StepRecord, VirtualClock},
    sweep::processes::{Embedded, Side, Watch, temporary_folder},
};

pub(super) struct EmbeddedStore {
    embedded: Embedded,
    folder: TempDir,
    clock: VirtualClock,
    parking: Arc<Parking>,
    data: Mutex<Data>,
}

/// A digest of the committed data, which is read again only after another commit.
#[derive(Default)]
struct Data {
    read: Option<Digest>,
    known: Option<(u64, u64)>,
}

impl EmbeddedStore {
    pub(super) fn empty(embedded: Embedded) -> Result<Self, String> {
        let folder =
            temporary_folder().map_err(|error| format!("no folder: {error}"))?;
        let parking = Parking::new(embedded.transactions);
        let (clock, data) = (VirtualClock::new(), Mutex::default());
        Ok(Self { embedded, folder, clock, parking, data })
    }

    /// Returns the hook that the backend calls before and after each statement of an
    /// actor.
    fn watch(&self, actor: &str) -> Watch {
        let (parking, label) = (Arc::clone(&self.parking), self.embedded.label);
        let actor = actor.to_owned();
        Arc::new(move |side, text| {
            match side {
                Side::Before => parking.before(&actor, text, label(text)),
                Side::After => parking.after(&actor, text),
            }
            Ok(())
        })
    }

    fn committed(&self) -> Result<u64, String> {
        let mut data = self.data.lock().unwrap_or_else(PoisonError::into_inner);
        let commits = self.parking.commits();
        if let Some((shown, digest)) = data.known
            && shown == commits
        {
            return Ok(digest);
        }
        if data.read.is_none() {
            data.read = Some((self.embedded.transactions.digest)(self.folder.path())?);
        }
        let digest = data.read.as_mut().expect("it is opened")()?;
        data.known = Some((commits, digest));
        Ok(digest)
    }
}

#[async_trait]
impl SteppedStore for EmbeddedStore {
    fn clock(&self) -> &VirtualClock {
        &self.clock
    }

    async fn connect(
        &self,
        actor: &str,
        queue: &QueueName,
        environment: &Environment,
    ) -> Result<Arc<dyn Queue>, String> {
        let clock = WatchedClock {
            actor: actor.to_owned(),
            clock: self.clock.clone(),
            parking: Arc::clone(&self.parking),
        };
        let environment = environment.with_clock(Arc::new(clock));
        let (folder, watch) = (self.folder.path().to_owned(), self.watch(actor));
        let opening =
            (self.embedded.open)(folder, queue.clone(), environment, Some(watch));
        let opened = opening.await.map_err(|error| error.full_message())?;
        // Make a call that only reads: the first such call may open another connection,
        // which must happen before the search begins.
        opened.stats().await.map_err(|error| error.full_message())?;
        Ok(opened)
    }

    fn park(&self) {
        self.parking.park();
    }

    async fn parked(&self, count: usize) -> Vec<StepRecord> {
        self.parking.parked(count).await
    }

    fn can_run(&self, step: &StepRecord) -> bool {
        self.parking.can_run(step)
    }

    fn is_independent(&self, step: &StepRecord) -> bool {
        self.parking.is_inside(step)
    }

    fn pass(&self, step: &StepRecord) -> Result<(), String> {
        self.parking.pass(step, self.committed()?);
        Ok(())
    }

    async fn kill(&self, step: &StepRecord) {
        self.parking.kill(step).await;
    }

    fn seen(&self, actor: &str) -> u64 {
        self.parking.seen(actor)
    }

    async fn data(&self) -> Result<u64, String> {
        self.committed()
    }

    async fn heal(&self) -> Result<(), String> {
        self.parking.heal();
        Ok(())
    }

    fn check(&self) -> Result<(), String> {
        self.parking.check()
    }
}

impl Drop for EmbeddedStore {
    fn drop(&mut self) {
        self.parking.end();
    }
}

/// The store's clock. It records each time that an actor reads from it.
struct WatchedClock {
    actor: String,
    clock: VirtualClock,
    parking: Arc<Parking>,
}

impl Clock for WatchedClock {
    fn now(&self) -> Timestamp {
        let now = self.clock.now();
        self.parking.reads_clock(&self.actor, now);
        now
    }

    fn elapsed(&self) -> Duration {
        let elapsed = self.clock.elapsed();
        self.parking.reads_clock(&self.actor, elapsed);
        elapsed
    }

    fn sleep(&self, duration: Duration) -> Pin<Box<dyn Future<Output = ()> + Send>> {
        self.clock.sleep(duration)
    }
}

impl fmt::Debug for WatchedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.clock.fmt(f)
    }
}
