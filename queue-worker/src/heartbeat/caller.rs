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
    environment::Environment, error::Operation, operator::WorkerReport,
    outcome::Extended,
};
use tokio::sync::OnceCell;

use crate::held::Beat;

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
    environment: Environment,
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
        environment: Environment,
    ) -> Self {
        Self {
            queue,
            another: OnceCell::new(),
            is_reopening: AtomicBool::new(false),
            begun: environment.clock().elapsed(),
            worker,
            environment,
        }
    }

    pub(super) fn capabilities(&self) -> &Capabilities {
        self.queue.capabilities()
    }

    pub(super) fn now(&self) -> Duration {
        self.environment.clock().elapsed()
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
                self.environment.clock().sleep(left).await;
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
        tokio::spawn(opening);
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
    use std::{fmt, future::pending, num::NonZeroU32};

    use async_trait::async_trait;
    use relq_core::{
        ClaimRequest, Delivery, NewJob, PushToken, QueueName, Settlement,
        outcome::{Pushed, Recovered, Released, Settled},
    };
    use relq_memory::{MemoryQueue, MemoryStore};

    use super::*;

    /// A queue that never opens another connection, because a node is silent.
    #[derive(Debug)]
    struct Silent(MemoryQueue);

    impl fmt::Display for Silent {
        fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            f.write_str("silent")
        }
    }

    #[async_trait]
    impl ReliableQueue for Silent {
        fn capabilities(&self) -> &Capabilities {
            self.0.capabilities()
        }

        async fn push(
            &self,
            jobs: &[NewJob],
            token: Option<&PushToken>,
        ) -> Result<Vec<Pushed>, Error> {
            self.0.push(jobs, token).await
        }

        async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
            self.0.claim(ask).await
        }

        async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
            self.0.settle(done).await
        }

        async fn extend(
            &self,
            worker: &WorkerId,
            held: &[Receipt],
            lease: Duration,
        ) -> Result<Vec<Extended>, Error> {
            self.0.extend(worker, held, lease).await
        }

        async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
            self.0.release_worker(worker).await
        }

        async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
            self.0.recover(page).await
        }

        async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
            pending().await
        }
    }

    /// R10: the leases on the other nodes are extended while a silent node delays the
    /// opening of the heartbeat's own connection.
    #[tokio::test]
    async fn a_heartbeat_does_not_wait_for_its_own_connection() {
        let name = QueueName::new("emails").unwrap();
        let queue = MemoryStore::default().open(name, Environment::default());
        let worker = WorkerId::new("worker").unwrap();
        let caller =
            Caller::new(Arc::new(Silent(queue)), worker, Environment::default());
        let caller = Arc::new(caller);
        let beat = || {
            let beat = Beat { lease: Duration::from_millis(60), jobs: Vec::new() };
            Arc::clone(&caller).extend(beat)
        };

        let both = async { tokio::join!(beat(), beat()) };
        let limit = Duration::from_secs(30);
        let (first, second) = tokio::time::timeout(limit, both).await.expect("in time");

        assert!(first.result.is_ok() && second.result.is_ok());
    }
}
