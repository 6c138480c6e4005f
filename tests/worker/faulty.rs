//! A queue for tests of the worker. It forwards the calls to a real queue, and lets
//! those calls fail or return late that a test chooses.

use std::{
    fmt,
    num::NonZeroU32,
    sync::{
        Arc, Mutex,
        atomic::{AtomicUsize, Ordering::SeqCst},
    },
    time::Duration,
};

use async_trait::async_trait;
use relq::{
    ClaimRequest, Delivery, Disposition, Error, NewJob, PushToken, Receipt,
    ReliableQueue, Settlement, WorkerId,
    batch::BatchQueue,
    capabilities::{Capabilities, Capability},
    error::{ErrorContext, Operation},
    operator::WorkerReport,
    outcome::{Extended, Pushed, Recovered, Released, Settled, SettledAndClaimed},
    results::ResultQueue,
    schedule::ScheduleQueue,
};
use tokio::sync::Notify;

/// The fault that a test injects into one call.
#[derive(Clone)]
pub(crate) enum Fault {
    /// The call is not made, and fails as if the store could not be reached.
    Unavailable,
    /// The call is made, but its reply is lost.
    AnswerLost,
    /// The call is not made, and fails as if the store had denied the permission. No
    /// retry repairs that.
    Denied,
    /// The call is not made, and fails as if the store were a replica, which accepts no
    /// writes.
    ReadOnly,
    /// The call is not made, and fails as if the server were of the wrong kind.
    WrongServer,
    /// The call is not made, and fails as if the store had refused its content.
    Refused,
    /// The call panics, as if the backend had a bug.
    Panic,
    /// The call is made, and returns when the test allows it.
    Late(Arc<Notify>),
    /// The call is made, and the function runs just before the call returns.
    Overtaken(Arc<dyn Fn() + Send + Sync>),
}

/// Chooses the fault of a call. The arguments are the number of the call, from 0, and
/// how many jobs the call handles.
type Decide = dyn Fn(usize, usize) -> Option<Fault> + Send + Sync;

/// The faults of one kind of call, such as claims, the number of such calls so far, and
/// how many of them the store has answered.
#[derive(Clone)]
pub(crate) struct Faults {
    decide: Arc<Decide>,
    calls: Arc<AtomicUsize>,
    answers: Arc<AtomicUsize>,
}

impl Faults {
    pub(crate) fn calls(&self) -> usize {
        self.calls.load(SeqCst)
    }

    pub(crate) fn answers(&self) -> usize {
        self.answers.load(SeqCst)
    }

    fn on(
        &mut self,
        decide: impl Fn(usize, usize) -> Option<Fault> + Send + Sync + 'static,
    ) {
        self.decide = Arc::new(decide);
    }

    async fn around<T>(
        &self,
        operation: Operation,
        jobs: usize,
        call: impl Future<Output = Result<T, Error>>,
    ) -> Result<T, Error> {
        let at = ErrorContext { backend: "faulty", operation };
        let source = "as the test wants it".into();
        let call = async {
            let answer = call.await;
            self.answers.fetch_add(1, SeqCst);
            answer
        };
        match (self.decide)(self.calls.fetch_add(1, SeqCst), jobs) {
            None => call.await,
            Some(Fault::Unavailable) => Err(Error::Unavailable { at, source }),
            Some(Fault::AnswerLost) => {
                call.await?;
                Err(Error::Interrupted { at, source })
            }
            Some(Fault::Denied) => Err(Error::Denied { at, source }),
            Some(Fault::ReadOnly) => Err(Error::ReadOnly { at, source }),
            Some(Fault::WrongServer) => Err(Error::WrongServer { at, source }),
            Some(Fault::Refused) => {
                Err(Error::Invalid { at, reason: "as the test wants it".into() })
            }
            Some(Fault::Panic) => panic!("as the test wants it"),
            Some(Fault::Late(release)) => {
                let answer = call.await;
                release.notified().await;
                answer
            }
            Some(Fault::Overtaken(happens)) => {
                let answer = call.await;
                happens();
                answer
            }
        }
    }
}

impl Default for Faults {
    fn default() -> Self {
        Self {
            decide: Arc::new(|_, _| None),
            calls: Arc::default(),
            answers: Arc::default(),
        }
    }
}

/// A queue that injects faults. Its handles from `open_another` have the same faults.
pub(crate) struct Faulty {
    inner: Arc<dyn ReliableQueue>,
    pub(crate) claims: Faults,
    pub(crate) settlements: Faults,
    pub(crate) extensions: Faults,
    pub(crate) recoveries: Faults,
    pub(crate) releases: Faults,
    pub(crate) reports: Faults,
    connections: Faults,
    /// The reports of workers that were sent, whether they were stored or not.
    pub(crate) reported: Arc<Mutex<Vec<WorkerReport>>>,
    capabilities: Capabilities,
    takes_retries: bool,
}

impl Faulty {
    pub(crate) fn new(inner: Arc<dyn ReliableQueue>) -> Self {
        Self {
            capabilities: inner.capabilities().clone(),
            inner,
            claims: Faults::default(),
            settlements: Faults::default(),
            extensions: Faults::default(),
            recoveries: Faults::default(),
            releases: Faults::default(),
            reports: Faults::default(),
            connections: Faults::default(),
            reported: Arc::default(),
            takes_retries: true,
        }
    }

    /// Refuses every settlement that contains a `Retry`.
    pub(crate) fn without_retries(mut self) -> Self {
        self.takes_retries = false;
        self
    }

    /// Says that the backend lists workers.
    pub(crate) fn listing_workers(self) -> Self {
        let mut queue = self.listing_no_workers();
        queue.capabilities.supported.to_mut().push(Capability::Inspect);
        queue
    }

    /// Says that the backend lists no workers.
    pub(crate) fn listing_no_workers(mut self) -> Self {
        let supported = self.capabilities.supported.to_mut();
        supported.retain(|option| *option != Capability::Inspect);
        self
    }

    pub(crate) fn on_report(
        mut self,
        decide: impl Fn(usize, usize) -> Option<Fault> + Send + Sync + 'static,
    ) -> Self {
        self.reports.on(decide);
        self
    }

    pub(crate) fn on_claim(
        mut self,
        decide: impl Fn(usize, usize) -> Option<Fault> + Send + Sync + 'static,
    ) -> Self {
        self.claims.on(decide);
        self
    }

    pub(crate) fn on_settle(
        mut self,
        decide: impl Fn(usize, usize) -> Option<Fault> + Send + Sync + 'static,
    ) -> Self {
        self.settlements.on(decide);
        self
    }

    pub(crate) fn on_recover(
        mut self,
        decide: impl Fn(usize, usize) -> Option<Fault> + Send + Sync + 'static,
    ) -> Self {
        self.recoveries.on(decide);
        self
    }

    pub(crate) fn on_release(
        mut self,
        decide: impl Fn(usize, usize) -> Option<Fault> + Send + Sync + 'static,
    ) -> Self {
        self.releases.on(decide);
        self
    }

    pub(crate) fn on_connect(
        mut self,
        decide: impl Fn(usize, usize) -> Option<Fault> + Send + Sync + 'static,
    ) -> Self {
        self.connections.on(decide);
        self
    }

    pub(crate) fn on_extend(
        mut self,
        decide: impl Fn(usize, usize) -> Option<Fault> + Send + Sync + 'static,
    ) -> Self {
        self.extensions.on(decide);
        self
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl ReliableQueue for Faulty {
    fn capabilities(&self) -> &Capabilities {
        &self.capabilities
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        self.inner.push(jobs, token).await
    }

    fn part_of_job(&self, job: &NewJob) -> Result<Option<usize>, Error> {
        self.inner.part_of_job(job)
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        let call = self.inner.claim(ask);
        self.claims.around(Operation::Claim, ask.max.get() as usize, call).await
    }

    async fn wait_for_jobs(&self, limit: Duration) -> Result<(), Error> {
        self.inner.wait_for_jobs(limit).await
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        let is_retry =
            |one: &Settlement| matches!(one.disposition, Disposition::Retry { .. });
        if !self.takes_retries && done.iter().any(is_retry) {
            let at = ErrorContext { backend: "faulty", operation: Operation::Settle };
            return Err(Error::Unusable { at, source: "as the test wants it".into() });
        }
        let call = self.inner.settle(done);
        self.settlements.around(Operation::Settle, done.len(), call).await
    }

    async fn settle_and_claim(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        let settled = self.settle(done).await;
        let at_once = ask.clone().wait(Duration::ZERO);
        SettledAndClaimed { settled, claimed: self.claim(&at_once).await }
    }

    async fn extend(
        &self,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        let call = self.inner.extend(worker, held, lease);
        self.extensions.around(Operation::Extend, held.len(), call).await
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        let call = self.inner.release_worker(worker);
        self.releases.around(Operation::ReleaseWorker, 0, call).await
    }

    async fn report_worker(&self, report: &WorkerReport) -> Result<(), Error> {
        self.reported.lock().unwrap().push(report.clone());
        let call = self.inner.report_worker(report);
        self.reports.around(Operation::ReportWorker, 0, call).await
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        self.recoveries.around(Operation::Recover, 0, self.inner.recover(page)).await
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        let opened = self.inner.open_another();
        let inner = self.connections.around(Operation::Connect, 0, opened).await?;
        Ok(Arc::new(Self {
            inner,
            claims: self.claims.clone(),
            settlements: self.settlements.clone(),
            extensions: self.extensions.clone(),
            recoveries: self.recoveries.clone(),
            releases: self.releases.clone(),
            reports: self.reports.clone(),
            connections: self.connections.clone(),
            reported: Arc::clone(&self.reported),
            capabilities: self.capabilities.clone(),
            takes_retries: self.takes_retries,
        }))
    }

    /// Returns `None`, because the calls for batches would bypass the faults.
    fn batch_queue(&self) -> Option<&dyn BatchQueue> {
        None
    }

    /// Returns `None`, because the calls for schedules would bypass the faults.
    fn schedule_queue(&self) -> Option<&dyn ScheduleQueue> {
        None
    }

    /// Returns `None`, because the calls for results would bypass the faults.
    fn result_queue(&self) -> Option<&dyn ResultQueue> {
        None
    }
}

impl fmt::Debug for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Faulty({:?})", self.inner)
    }
}

impl fmt::Display for Faulty {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "faulty {}", self.inner)
    }
}
