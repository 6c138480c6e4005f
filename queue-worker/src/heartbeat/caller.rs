//! The calls of the heartbeat thread, on a connection of their own.

use std::{sync::Arc, time::Duration};

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
        Self { queue, another: OnceCell::new(), worker, environment }
    }

    pub(super) fn capabilities(&self) -> &Capabilities {
        self.queue.capabilities()
    }

    pub(super) fn now(&self) -> Duration {
        self.environment.clock().elapsed()
    }

    pub(super) async fn extend(&self, beat: Beat) -> Answer {
        let receipts: Vec<Receipt> =
            beat.jobs.iter().map(|job| job.receipt().clone()).collect();
        // A queue on several nodes cannot be opened while one of them is down. The handle
        // of the worker was opened before, and extends the leases of the other nodes.
        let queue = self.opened_within(beat.lease / 6).await.unwrap_or(&self.queue);
        // The worker counts the extended lease from this time. The store extends the
        // lease later, so the worker never believes in a lease for too long.
        let sent = self.now();
        let result = queue.extend(&self.worker, &receipts, beat.lease).await;
        Answer { operation: Operation::Extend, beat, sent, result }
    }

    /// The own connection, if it is open by the end of `limit`. The limit is shorter than
    /// the time between two heartbeats: only one caller opens the connection at a time, so
    /// without a limit the heartbeats would queue up while a node is silent.
    async fn opened_within(&self, limit: Duration) -> Option<&Arc<dyn ReliableQueue>> {
        let opened = async {
            let opened = self.open_another().await;
            opened.map_err(|error| error.full_message())
        };
        let late = async {
            self.environment.clock().sleep(limit).await;
            Err(format!("it is not open after {limit:?}"))
        };
        match or(opened, late).await {
            Ok(queue) => Some(queue),
            Err(error) => {
                tracing::debug!(error, "the heartbeat uses the worker's connection");
                None
            }
        }
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
        let beat = || Beat { lease: Duration::from_millis(60), jobs: Vec::new() };

        let both = async { tokio::join!(caller.extend(beat()), caller.extend(beat())) };
        let limit = Duration::from_secs(30);
        let (first, second) = tokio::time::timeout(limit, both).await.expect("in time");

        assert!(first.result.is_ok() && second.result.is_ok());
    }
}
