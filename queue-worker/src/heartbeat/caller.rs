//! The calls of the heartbeat thread, on a connection of their own.

use std::{sync::Arc, time::Duration};

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
        let queue = self.open_another().await.unwrap_or_else(|error| {
            let error = error.full_message();
            tracing::debug!(error, "the heartbeat uses the connection of the worker");
            &self.queue
        });
        // The worker counts the extended lease from this time. The store extends the
        // lease later, so the worker never believes in a lease for too long.
        let sent = self.now();
        let result = queue.extend(&self.worker, &receipts, beat.lease).await;
        Answer { operation: Operation::Extend, beat, sent, result }
    }

    pub(super) async fn report(&self, report: &WorkerReport) -> Result<(), Error> {
        self.open_another().await?.report_worker(report).await
    }

    pub(super) async fn open_another(&self) -> Result<&Arc<dyn ReliableQueue>, Error> {
        self.another.get_or_try_init(|| self.queue.open_another()).await
    }
}
