//! The fixture of every worker test: a queue on a store of its own, and a worker.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering::SeqCst},
    },
    time::{Duration, Instant},
};

use relq::{
    ClaimRequest, Delivery, NewJob, Queue, QueueName, ReliableQueue, ReliableQueueExt,
    Stats, WorkerId,
    operator::{JobState, JobView, PeekRequest},
    worker::{
        CancellationToken, Handler, Progress, RetryPolicy, Summary, Worker, WorkerError,
    },
};
use relq_conformance::server::Server;
use tempfile::TempDir;
use tokio::task::JoinHandle;

/// The time limit of a test. A test that succeeds does not reach it.
pub(crate) const LIMIT: Duration = Duration::from_secs(20);

/// The length of a lease that no test outlives: it is not lost because the machine is
/// busy.
pub(crate) const LONG_LEASE: Duration = Duration::from_secs(3600);

/// The length of a lease for tests that wait until it expires, or until a heartbeat
/// extends it. Other tests use a long one, because a machine that stands still for 900 ms
/// ends this one.
pub(crate) const SHORT_LEASE: Duration = Duration::from_millis(900);

/// A queue for one test, on a store that no other test uses.
pub(crate) struct Fixture {
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) url: String,
    pub(crate) store: StoreLocation,
}

/// The folder or server of the store, which is removed when this value is dropped.
pub(crate) enum StoreLocation {
    Folder { _folder: TempDir },
    Server(Server),
}

impl Fixture {
    pub(crate) async fn sqlite() -> Self {
        let folder = TempDir::new().unwrap();
        let url = format!("sqlite:{}", folder.path().join("relq.db").display());
        Self::open(url, StoreLocation::Folder { _folder: folder }).await
    }

    pub(crate) async fn zset() -> Self {
        Self::on_redis("zset").await
    }

    #[cfg(feature = "circular")]
    pub(crate) async fn circular() -> Self {
        Self::on_redis("circular").await
    }

    #[cfg(feature = "processing-list")]
    pub(crate) async fn processing_list() -> Self {
        Self::on_redis("processing-list").await
    }

    #[cfg(feature = "stream")]
    pub(crate) async fn stream() -> Self {
        Self::on_redis("stream").await
    }

    #[cfg(feature = "keyspace")]
    pub(crate) async fn keyspace() -> Self {
        Self::on_redis("keyspace").await
    }

    async fn on_redis(backend: &str) -> Self {
        let durable = ["--appendonly", "yes", "--appendfsync", "always"];
        let server = Server::start_with(&durable);
        Self::open(format!("{backend}+{}", server.url()), StoreLocation::Server(server))
            .await
    }

    async fn open(url: String, store: StoreLocation) -> Self {
        let queue = relq::connect(&url, &queue_name()).await.unwrap();
        Self { queue, url, store }
    }

    /// Opens another queue of the same store.
    pub(crate) async fn open_another(&self, name: &str) -> Arc<dyn Queue> {
        let name = QueueName::new(name).unwrap();
        relq::connect(&self.url_of_another(), &name).await.unwrap()
    }

    /// The URL of another queue. A queue of the keyspace pattern needs a database of its
    /// own.
    fn url_of_another(&self) -> String {
        if !self.url.starts_with("keyspace+") {
            return self.url.clone();
        }
        match self.url.strip_suffix("/0") {
            Some(server) => format!("{server}/1"),
            None => format!("{}?db=1", self.url),
        }
    }

    pub(crate) async fn push(&self, job: impl Into<NewJob>) {
        self.queue.push_one(job.into()).await.unwrap();
    }

    pub(crate) async fn push_many(&self, count: usize) {
        let jobs: Vec<_> = (0..count).map(|n| NewJob::new(n.to_string())).collect();
        self.queue.push_all(&jobs).await.unwrap();
    }

    pub(crate) async fn stats(&self) -> Stats {
        self.queue.stats().await.unwrap()
    }

    /// Claims one ready job as a worker other than the tested one.
    pub(crate) async fn claim_one(&self) -> Option<Delivery> {
        Self::claim_one_of(&*self.queue).await
    }

    /// Claims one ready job of `queue` as a worker other than the tested one.
    pub(crate) async fn claim_one_of(queue: &dyn Queue) -> Option<Delivery> {
        let stranger = WorkerId::new("stranger").unwrap();
        let ask = ClaimRequest::new(stranger, Duration::from_secs(30));
        queue.claim_one(&ask).await.unwrap()
    }

    /// Recovers the only job as soon as its lease has expired, and claims it as a worker
    /// other than the tested one.
    pub(crate) async fn recover_and_claim_one(&self) -> Delivery {
        let start = Instant::now();
        loop {
            self.queue.recover(100.try_into().unwrap()).await.unwrap();
            if let Some(delivery) = self.claim_one().await {
                return delivery;
            }
            assert!(start.elapsed() < LIMIT, "the job does not come back");
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    pub(crate) async fn dead(&self) -> Vec<JobView> {
        let all = PeekRequest::new(JobState::Dead, 100.try_into().unwrap());
        self.queue.peek(&all).await.unwrap().jobs
    }

    /// Waits until `is_so` returns true for the queue's statistics. Failed reads are
    /// ignored, because a server that changes its role closes its connections.
    pub(crate) async fn until(&self, is_so: impl Fn(&Stats) -> bool) {
        let start = Instant::now();
        loop {
            let stats = self.queue.stats().await;
            if stats.as_ref().is_ok_and(&is_so) {
                return;
            }
            assert!(start.elapsed() < LIMIT, "still {stats:?}");
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    /// Creates a worker with settings for tests: its leases are short, and it retries
    /// after a short delay.
    pub(crate) fn worker(&self) -> Worker {
        worker_on(self.queue.clone())
    }

    /// Runs `handler` with the settings of [`Fixture::worker`].
    pub(crate) fn start(&self, handler: impl Handler) -> Running {
        Running::start(self.worker(), handler)
    }
}

pub(crate) fn queue_name() -> QueueName {
    QueueName::new("work").unwrap()
}

pub(crate) fn worker_on(queue: Arc<dyn ReliableQueue>) -> Worker {
    let prompt = Duration::from_millis(1);
    Worker::new(queue)
        .lease(LONG_LEASE)
        .reap_every(Duration::from_millis(200))
        .retry(RetryPolicy::exponential(prompt, prompt).unwrap())
}

/// A worker that runs on its own task, with handles to stop it.
pub(crate) struct Running {
    pub(crate) progress: Progress,
    stop: CancellationToken,
    halt: CancellationToken,
    task: JoinHandle<Result<Summary, WorkerError>>,
}

impl Running {
    pub(crate) fn start(worker: Worker, handler: impl Handler) -> Self {
        let (stop, halt) = (CancellationToken::new(), CancellationToken::new());
        let worker = worker
            .stop_on(stop.clone().cancelled_owned())
            .halt_on(halt.clone().cancelled_owned());
        let progress = worker.progress();
        let task = tokio::spawn(worker.run(handler));
        Self { progress, stop, halt, task }
    }

    /// Asks the worker to stop gracefully, and returns at once.
    pub(crate) fn ask_to_stop(&self) {
        self.stop.cancel();
    }

    /// Asks the worker to stop hard, and returns at once.
    pub(crate) fn halt(&self) {
        self.halt.cancel();
    }

    /// Drops the worker's future, without a shutdown.
    pub(crate) async fn drop_future(self) {
        self.task.abort();
        assert!(self.task.await.unwrap_err().is_cancelled());
    }

    /// Waits until the worker ends without a request to stop.
    pub(crate) async fn end(self) -> Result<Summary, WorkerError> {
        tokio::time::timeout(LIMIT, self.task).await.expect("the worker ends").unwrap()
    }

    /// Stops the worker gracefully, and waits until it has ended.
    pub(crate) async fn stop(self) -> Summary {
        self.ask_to_stop();
        self.end().await.unwrap()
    }

    /// Waits until `handlers` handlers of the worker run.
    pub(crate) async fn until_running(&self, handlers: u64) {
        eventually(|| self.progress.running() == handlers).await;
    }

    /// Waits until `is_so` returns true for the worker's counts of its jobs.
    pub(crate) async fn until(&self, is_so: impl Fn(&Summary) -> bool) {
        eventually(|| is_so(&self.progress.summary())).await;
    }
}

/// Sets a flag when it is dropped, even when a test fails. A handler that blocks its
/// thread returns when the flag is set. Without the flag the runtime could not end.
pub(crate) struct Dropped(pub(crate) Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, SeqCst);
    }
}

/// Waits until `is_so` returns true, for at most `LIMIT`.
pub(crate) async fn eventually(is_so: impl Fn() -> bool) {
    let start = Instant::now();
    while !is_so() {
        assert!(start.elapsed() < LIMIT, "it does not come true");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}
