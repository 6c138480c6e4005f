//! The calls of the heartbeat thread, on a connection of their own.

use std::{
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use futures_lite::future::or;
use relq_core::{
    Error, Receipt, ReliableQueue, WorkerId, capabilities::Capabilities,
    error::Operation, operator::WorkerReport, outcome::Extended,
};
use tokio::sync::OnceCell;
use tracing::Instrument as _;

use crate::{held::Beat, lease_clock::LeaseClock};

/// The values that a call of the thread uses. The first call opens the connection of the
/// heartbeats, on the runtime of the heartbeat thread.
pub(super) struct Caller {
    queue: Arc<dyn ReliableQueue>,
    another: OnceCell<Arc<dyn ReliableQueue>>,
    /// Whether a task opens the connection anew.
    is_reopening: AtomicBool,
    /// When the worker began to open the connection.
    begun: Duration,
    worker: WorkerId,
    clock: LeaseClock,
}

/// The answer to a heartbeat, or to the opening of the connection.
pub(super) struct Answer {
    pub(super) operation: Operation,
    pub(super) beat: Beat,
    pub(super) sent: Duration,
    pub(super) result: Result<Vec<Extended>, Error>,
}

impl Caller {
    pub(super) fn new(
        queue: Arc<dyn ReliableQueue>,
        worker: WorkerId,
        clock: LeaseClock,
    ) -> Self {
        Self {
            queue,
            another: OnceCell::new(),
            is_reopening: AtomicBool::new(false),
            begun: clock.elapsed(),
            worker,
            clock,
        }
    }

    pub(super) fn capabilities(&self) -> &Capabilities {
        self.queue.capabilities()
    }

    pub(super) fn now(&self) -> Duration {
        self.clock.elapsed()
    }

    pub(super) async fn extend(self: Arc<Self>, beat: Beat) -> Answer {
        let receipts: Vec<Receipt> =
            beat.jobs.iter().map(|job| job.receipt().clone()).collect();
        // A queue on several nodes cannot be opened while one of them is down. The handle
        // of the worker was opened before, and extends the leases of the other nodes.
        let queue = self.opened_within(beat.lease / 6).await;
        // The worker counts the extended lease from this time. The store extends the
        // lease later, so the worker never believes in a lease for too long.
        let sent = self.now();
        let result = queue.extend(&self.worker, &receipts, beat.lease).await;
        Answer { operation: Operation::Extend, beat, sent, result }
    }

    /// The connection of the heartbeats if it is open, or else that of the worker. A heartbeat
    /// waits for the opening only within `limit` of its beginning. Later it must not wait: an
    /// opening takes long while a node is silent, and the leases on the others would expire.
    async fn opened_within(
        self: &Arc<Self>,
        limit: Duration,
    ) -> &Arc<dyn ReliableQueue> {
        let left = self.begun.saturating_add(limit).saturating_sub(self.now());
        if !left.is_zero() {
            let opened = async { self.open_another().await.ok() };
            let late = async {
                self.clock.sleep(left).await;
                None
            };
            if let Some(queue) = or(opened, late).await {
                return queue;
            }
        }
        if self.another.get().is_none() {
            tracing::debug!("the heartbeat uses the connection of the worker");
            self.reopen();
        }
        self.another.get().unwrap_or(&self.queue)
    }

    /// Opens the own connection in a task, unless one does so already.
    fn reopen(self: &Arc<Self>) {
        if self.is_reopening.swap(true, Ordering::Relaxed) {
            return;
        }
        let caller = Arc::clone(self);
        let opening: Pin<Box<dyn Future<Output = ()> + Send>> = Box::pin(async move {
            if let Err(error) = caller.open_another().await {
                let error = error.full_message();
                tracing::debug!(error, "the connection of the heartbeats is not open");
            }
            caller.is_reopening.store(false, Ordering::Relaxed);
        });
        tokio::spawn(opening.in_current_span());
    }

    pub(super) async fn report(&self, report: &WorkerReport) -> Result<(), Error> {
        self.open_another().await?.report_worker(report).await
    }

    pub(super) async fn open_another(&self) -> Result<&Arc<dyn ReliableQueue>, Error> {
        self.another.get_or_try_init(|| self.queue.open_another()).await
    }
}

#[cfg(test)]
mod tests {
    use std::{fmt, future::pending, num::NonZeroU32, sync::atomic::AtomicUsize};

    use async_trait::async_trait;
    use relq_core::{
        ClaimRequest, Delivery, NewJob, PushToken, QueueName, Settlement,
        environment::Environment,
        error::ErrorContext,
        outcome::{Pushed, Recovered, Released, Settled},
    };
    use relq_memory::{MemoryQueue, MemoryStore};

    use super::*;

    /// The lease of the heartbeats. They wait for the opening of their connection within
    /// a sixth of it.
    const LEASE: Duration = Duration::from_millis(60);

    /// The time limit of a test. A test that succeeds does not reach it.
    const LIMIT: Duration = Duration::from_secs(30);

    /// A queue whose worker is connected, and a node of it, which a new connection needs.
    #[derive(Debug)]
    struct Connected {
        queue: MemoryQueue,
        node: Node,
    }

    #[derive(Debug)]
    enum Node {
        /// It never replies.
        Silent,
        /// It refuses this many connections.
        Refusing(AtomicUsize),
    }

    impl fmt::Display for Connected {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("connected")
        }
    }

    #[async_trait]
    impl ReliableQueue for Connected {
        fn capabilities(&self) -> &Capabilities {
            self.queue.capabilities()
        }

        async fn push(
            &self,
            jobs: &[NewJob],
            token: Option<&PushToken>,
        ) -> Result<Vec<Pushed>, Error> {
            self.queue.push(jobs, token).await
        }

        async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
            self.queue.claim(ask).await
        }

        async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
            self.queue.settle(done).await
        }

        async fn extend(
            &self,
            worker: &WorkerId,
            held: &[Receipt],
            lease: Duration,
        ) -> Result<Vec<Extended>, Error> {
            self.queue.extend(worker, held, lease).await
        }

        async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
            self.queue.release_worker(worker).await
        }

        async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
            self.queue.recover(page).await
        }

        async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
            let Node::Refusing(left) = &self.node else { return pending().await };
            if left.load(Ordering::Relaxed) == 0 {
                return self.queue.open_another().await;
            }
            left.fetch_sub(1, Ordering::Relaxed);
            let operation = Operation::Connect;
            let at = ErrorContext { backend: "test", operation };
            Err(Error::Unavailable { at, source: "refused".into() })
        }
    }

    fn caller(node: Node) -> Arc<Caller> {
        let name = QueueName::new("emails").unwrap();
        let queue = MemoryStore::default().open(name, Environment::default());
        let worker = WorkerId::new("worker").unwrap();
        let queue = Arc::new(Connected { queue, node });
        let clock = LeaseClock::new(Environment::default());
        Arc::new(Caller::new(queue, worker, clock))
    }

    async fn beat(caller: &Arc<Caller>) -> Answer {
        Arc::clone(caller).extend(Beat { lease: LEASE, jobs: Vec::new() }).await
    }

    /// R10: the leases on the other nodes are extended while a silent node delays the
    /// opening of the heartbeat's own connection. The heartbeats leave one task behind that
    /// opens it, and not one each.
    #[tokio::test]
    async fn a_heartbeat_does_not_wait_for_its_own_connection() {
        let caller = caller(Node::Silent);

        let all = async { tokio::join!(beat(&caller), beat(&caller), beat(&caller)) };
        let all = tokio::time::timeout(LIMIT, all).await.expect("in time");

        assert!([all.0, all.1, all.2].iter().all(|answer| answer.result.is_ok()));
        assert_eq!(Arc::strong_count(&caller), 2, "the test and one task have it");
    }

    /// R6: the connection of the worker may need the threads of its runtime, which handlers
    /// may block. So a heartbeat does not use it while its own is being opened.
    #[tokio::test]
    async fn an_early_heartbeat_waits_for_its_own_connection() {
        let caller = caller(Node::Refusing(AtomicUsize::new(0)));

        let used = caller.opened_within(LIMIT).await;

        assert!(!Arc::ptr_eq(used, &caller.queue), "it uses that of the worker");
    }

    /// A node that refused the connection of the heartbeats may accept it later. So each
    /// heartbeat that is sent without this connection has it opened anew.
    #[tokio::test]
    async fn a_refused_connection_is_opened_by_later_heartbeats() {
        let caller = caller(Node::Refusing(AtomicUsize::new(3)));
        // From now on no heartbeat opens the connection itself.
        tokio::time::sleep(LEASE / 6).await;

        let opened = async {
            while caller.another.get().is_none() {
                beat(&caller).await.result.unwrap();
                tokio::time::sleep(Duration::from_millis(1)).await;
            }
        };

        tokio::time::timeout(LIMIT, opened).await.expect("it is opened");
    }

    /// R10: a heartbeat that waited for its own connection until its lease has expired would
    /// be of no use.
    #[tokio::test]
    async fn a_heartbeat_is_sent_long_before_its_lease_ends() {
        let (caller, lease) = (caller(Node::Silent), LEASE * 50);

        let beat = Arc::clone(&caller).extend(Beat { lease, jobs: Vec::new() });

        tokio::time::timeout(lease, beat).await.expect("the lease has expired");
    }
}
