//! A queue in memory for the tests of an application: a clock that the test moves, a call
//! that runs the due jobs, and assertions on what was pushed.
//!
//! ```
//! use std::time::Duration;
//! use relq::worker::{Failure, JobContext};
//! use relq::{NewJob, Queue, ReliableQueueExt, testing::TestQueue};
//!
//! /// The code under test.
//! async fn sign_up(queue: &dyn Queue, address: &str) -> Result<(), relq::Error> {
//!     let welcome = NewJob::new(format!("welcome, {address}"));
//!     let reminder = NewJob::new(format!("are you there, {address}?"));
//!     queue.push_one(welcome).await?;
//!     queue.push_one(reminder.delay(Duration::from_secs(3600))).await?;
//!     Ok(())
//! }
//!
//! async fn send(_job: JobContext) -> Result<(), Failure> {
//!     Ok(())
//! }
//!
//! # #[tokio::main(flavor = "current_thread")]
//! # async fn main() -> Result<(), relq::Error> {
//! let emails = TestQueue::new();
//! sign_up(&*emails.queue(), "anna").await?;
//! emails.assert_pushed("welcome, anna");
//!
//! let drained = emails.drain(send).await;
//! drained.assert_all_done();
//! assert_eq!(&drained.ran[0].payload[..], b"welcome, anna");
//!
//! emails.advance(Duration::from_secs(3600));
//! assert_eq!(emails.drain(send).await.ran.len(), 1); // the reminder
//! emails.assert_nothing_waits();
//! # Ok(())
//! # }
//! ```
//!
//! The queue is that of the package `relq-memory`. It keeps the whole contract and has
//! every option of a job, but no batches. The page [`guide::test`](crate::guide::test)
//! says what else a test can use.

mod assertions;
mod clock;
mod drain;
mod waiting;

use std::{fmt, sync::Arc, time::Duration};

use relq_core::{
    Queue, QueueName,
    environment::{Clock as _, Environment, Timestamp},
};
use relq_memory::{MemoryQueue, MemoryStore};

use clock::{LongestJitter, TestClock};

pub use drain::{Drained, MAX_RUNS, Outcome, Ran};

/// The name of the queue that [`TestQueue::new`] opens.
const NAME: &str = "test";

/// A queue in memory for one test.
///
/// Each has a store and a clock of its own, so tests can run at the same time. Its time
/// stands still until the test [advances](Self::advance) it: no delay and no lease ends
/// by itself, and a due job stays due.
#[derive(Clone)]
pub struct TestQueue {
    store: MemoryStore,
    queue: Arc<MemoryQueue>,
    clock: Arc<TestClock>,
}

impl TestQueue {
    /// An empty queue with the name `test`, in a store of its own.
    pub fn new() -> Self {
        let name = QueueName::new(NAME).expect("a valid name");
        Self::open(MemoryStore::default(), name, Arc::new(TestClock::new()))
    }

    /// Another queue of the same store, with the same clock.
    ///
    /// ```
    /// use relq::{QueueName, testing::TestQueue};
    ///
    /// let emails = TestQueue::new();
    /// let invoices = emails.another(QueueName::new("invoices")?);
    /// # Ok::<(), relq::error::InvalidName>(())
    /// ```
    #[must_use]
    pub fn another(&self, name: QueueName) -> Self {
        Self::open(self.store.clone(), name, Arc::clone(&self.clock))
    }

    /// The queue, to be handed to the code under test.
    pub fn queue(&self) -> Arc<dyn Queue> {
        Arc::clone(&self.queue) as Arc<dyn Queue>
    }

    /// The environment of the queue: its clock, for code that takes an [`Environment`].
    ///
    /// Only `now` stands still. `elapsed` and `sleep` also follow the real time, so that
    /// a [`Worker`](crate::worker::Worker) that a test starts on the queue does not hang.
    pub fn environment(&self) -> Environment {
        environment(&self.clock)
    }

    /// The time of the queue, by which its jobs become due and expire.
    pub fn now(&self) -> Timestamp {
        self.clock.now()
    }

    /// Moves the time forward. The jobs that become due run with the next
    /// [`drain`](Self::drain).
    pub fn advance(&self, duration: Duration) {
        self.clock.advance(duration);
    }

    fn open(store: MemoryStore, name: QueueName, clock: Arc<TestClock>) -> Self {
        let queue = Arc::new(store.open(name, environment(&clock)));
        Self { store, queue, clock }
    }
}

fn environment(clock: &Arc<TestClock>) -> Environment {
    Environment::new(Arc::clone(clock) as Arc<_>, Arc::new(LongestJitter))
}

impl Default for TestQueue {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for TestQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TestQueue({}, {} jobs wait)", self.queue, self.waiting().len())
    }
}
