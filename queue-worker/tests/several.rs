//! A worker on several queues, one of which replies late.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

use std::{
    convert::Infallible,
    fmt,
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Error, NewJob, Operator as _, PushToken, QueueName,
    Receipt, ReliableQueue, Settlement, WorkerId,
    capabilities::Capabilities,
    environment::Environment,
    outcome::{Extended, Pushed, Recovered, Released, Settled},
};
use relq_memory::{MemoryQueue, MemoryStore};
use relq_worker::{CancellationToken, JobContext, Queues, Worker, WorkerQueue};

/// The time after which the test fails.
const LIMIT: Duration = Duration::from_secs(60);

/// A queue whose claims have no reply until `may_reply` is cancelled.
#[derive(Debug, Clone)]
struct Late {
    queue: MemoryQueue,
    /// Cancelled when a claim was sent.
    is_asked: CancellationToken,
    may_reply: CancellationToken,
    /// Cancelled when a claim has leased a job.
    has_leased: CancellationToken,
}

impl Late {
    fn new(queue: MemoryQueue) -> Self {
        let [is_asked, may_reply, has_leased] =
            [(); 3].map(|()| CancellationToken::new());
        Self { queue, is_asked, may_reply, has_leased }
    }
}

impl fmt::Display for Late {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("late")
    }
}

#[async_trait]
impl ReliableQueue for Late {
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
        self.is_asked.cancel();
        self.may_reply.cancelled().await;
        let jobs = self.queue.claim(ask).await?;
        if !jobs.is_empty() {
            self.has_leased.cancel();
        }
        Ok(jobs)
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
        self.queue.open_another().await
    }
}

fn in_memory(name: &str) -> MemoryQueue {
    let name = QueueName::new(name).unwrap();
    MemoryStore::default().open(name, Environment::default())
}

async fn push_a_job(queue: &MemoryQueue) {
    queue.push(&[NewJob::new("job")], None).await.unwrap();
}

async fn in_time(what: &CancellationToken) {
    tokio::time::timeout(LIMIT, what.cancelled()).await.unwrap();
}

fn served(name: &str, queue: Arc<dyn ReliableQueue>) -> WorkerQueue {
    WorkerQueue::new(QueueName::new(name).unwrap(), queue)
}

/// The numbers of ready and of leased jobs.
async fn ready_and_leased(queue: &MemoryQueue) -> (u64, u64) {
    let stats = queue.stats().await.unwrap();
    (stats.ready, stats.leased)
}

async fn until(queue: &MemoryQueue, expected: (u64, u64)) {
    let began = Instant::now();
    loop {
        let found = ready_and_leased(queue).await;
        if found == expected {
            return;
        }
        assert!(began.elapsed() < LIMIT, "{found:?} jobs are ready and leased");
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// A claim that is slow loses its slot to a queue whose handler takes long. Its job does not
/// wait for that handler: after half a lease, other workers can claim it.
#[tokio::test]
async fn job_that_gets_no_slot_is_given_back() {
    job_without_a_slot_comes_back(Duration::from_secs(4)).await;
}

/// Half of a long lease would be too long a wait, because other workers may have a free
/// slot.
#[tokio::test]
async fn job_with_a_long_lease_is_given_back_within_seconds() {
    job_without_a_slot_comes_back(20 * LIMIT).await;
}

async fn job_without_a_slot_comes_back(lease: Duration) {
    let (late, long) = (Late::new(in_memory("late")), in_memory("long"));
    push_a_job(&late.queue).await;
    let queues = Queues::strict([
        served("late", Arc::new(late.clone())),
        served("long", Arc::new(long.clone())),
    ]);
    let stop = CancellationToken::new();
    let worker = Worker::on(queues)
        .concurrency(NonZeroU32::MIN)
        .lease(lease)
        .stop_on(stop.clone().cancelled_owned());
    let may_end = CancellationToken::new();
    let is_over = may_end.clone();
    let running = tokio::spawn(worker.run(move |_: JobContext| {
        let is_over = is_over.clone();
        async move {
            is_over.cancelled().await;
            Ok::<_, Infallible>(())
        }
    }));
    in_time(&late.is_asked).await;
    push_a_job(&long).await;
    until(&long, (0, 1)).await;

    late.may_reply.cancel();
    in_time(&late.has_leased).await;
    until(&late.queue, (1, 0)).await;

    assert_eq!(ready_and_leased(&long).await, (0, 1), "the long handler still runs");
    stop.cancel();
    may_end.cancel();
    running.await.unwrap().unwrap();
}
