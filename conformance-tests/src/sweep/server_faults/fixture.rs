//! Queues, workers and store states for the tests of server faults.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use relq_core::{
    ClaimRequest, Delivery, JobId, NewJob, PushToken, Queue, QueueName,
    ReliableQueueExt, WorkerId,
    batch::{BatchId, BatchStatus},
    capabilities::Capability,
    environment::Environment,
    operator::{JobState, PeekRequest},
    results::JobResult,
    schedule::Schedule,
    unique::UniqueKey,
};
use relq_worker::{
    CancellationToken, DEFAULT_CONCURRENCY, Failure, JobContext, Progress, Worker,
};
use tokio::task::JoinHandle;

use super::batches::{submit, telling};
use crate::{Subject, server::Server};

/// A lease that does not expire during these tests.
pub(super) const LEASE: Duration = Duration::from_secs(60);

/// How long a test waits for an effect before it fails.
const PATIENCE: Duration = Duration::from_secs(20);

/// The backend under test, and the name of the queue that the tests use.
pub(super) struct FaultFixture {
    pub(super) subject: Box<dyn Subject>,
    pub(super) queue: QueueName,
}

impl FaultFixture {
    pub(super) fn of(subject: impl Subject) -> Self {
        let queue = QueueName::new("faults").expect("a valid name");
        Self { subject: Box::new(subject), queue }
    }

    pub(super) async fn connect(&self, server: &Server) -> Arc<dyn Queue> {
        self.connect_to(server, &self.queue).await
    }

    pub(super) async fn connect_to(
        &self,
        server: &Server,
        queue: &QueueName,
    ) -> Arc<dyn Queue> {
        let environment = Environment::default();
        let connected = self.subject.connect(&server.url(), queue, &environment).await;
        connected.expect("the queue is opened")
    }

    /// Starts a worker that finishes every job that it gets. It has a connection of its
    /// own to the queue, and its claims wait for a third of `lease`.
    pub(super) async fn work(&self, server: &Server, lease: Duration) -> RunningWorker {
        RunningWorker::start(self.connect(server).await, lease, DEFAULT_CONCURRENCY)
    }

    /// Like [`Self::work`], for a worker that runs up to `slots` jobs at once.
    pub(super) async fn work_with(
        &self,
        server: &Server,
        slots: NonZeroU32,
    ) -> RunningWorker {
        RunningWorker::start(self.connect(server).await, LEASE, slots)
    }
}

pub(super) fn worker_id() -> WorkerId {
    WorkerId::new("worker").expect("a valid id")
}

pub(super) fn ask(max: u32) -> ClaimRequest {
    ClaimRequest::new(worker_id(), LEASE).max(many(max))
}

pub(super) fn many(count: u32) -> NonZeroU32 {
    NonZeroU32::new(count).expect("not zero")
}

pub(super) fn job_id(id: &str) -> JobId {
    JobId::new(id).expect("a valid id")
}

pub(super) async fn push_plain(queue: &dyn Queue, payloads: &[&'static str]) {
    let jobs: Vec<_> = payloads.iter().copied().map(NewJob::new).collect();
    queue.push(&jobs, None).await.expect("pushed");
}

/// Claims until `count` jobs are held. One claim may not be enough, although all jobs
/// are ready: a claim of the circular backend may return only some of them.
pub(super) async fn take(queue: &dyn Queue, count: usize) -> Vec<Delivery> {
    let mut held = Vec::new();
    eventually("the jobs", async || {
        let left = u32::try_from(count - held.len()).expect("few jobs");
        held.extend(queue.claim(&ask(left)).await.expect("claimed"));
        held.len() == count
    })
    .await;
    held
}

/// One job for each option that the backend supports. All are ready except the delayed
/// one. The job with a unique key also expires, long after the test: a claim then changes
/// until when it holds its key.
pub(super) fn with_options(queue: &dyn Queue) -> Vec<NewJob> {
    let can = queue.capabilities();
    let mut jobs =
        vec![NewJob::new("urgent").priority(*can.priorities.end()).header("a", "b")];
    if can.supports(Capability::Unique) {
        let mut unique = NewJob::new("unique").unique(key("key"));
        unique.expires_in = can.supports(Capability::Expiry).then_some(100 * LEASE);
        jobs.push(unique);
    }
    if can.supports(Capability::ClientIds) {
        jobs.push(NewJob::new("mine").id(job_id("mine")));
    }
    if can.supports(Capability::Delay) {
        jobs.push(NewJob::new("later").delay(LEASE));
    }
    jobs
}

pub(super) fn key(key: &str) -> UniqueKey {
    UniqueKey::new(key).expect("a valid key")
}

/// A push token of that name. `None` if the backend does not support tokens.
pub(super) fn token(queue: &dyn Queue, name: &str) -> Option<PushToken> {
    let has_tokens = queue.capabilities().supports(Capability::PushTokens);
    has_tokens.then(|| PushToken::new(name).expect("a valid token"))
}

/// Pushes jobs and brings them into every state: ready (in each way in which a job
/// becomes ready), delayed, dead and leased. Returns the delivery of the leased job.
pub(super) async fn fill(queue: &dyn Queue) -> Delivery {
    push_plain(queue, &["dead"]).await;
    let dead = take(queue, 1).await.remove(0);
    queue.bury(&dead.receipt, "never").await.expect("buried");
    push_plain(queue, &["leased"]).await;
    let leased = take(queue, 1).await.remove(0);
    push_plain(queue, &["plain"]).await;
    let token = token(queue, "token");
    queue.push(&with_options(queue), token.as_ref()).await.expect("pushed");
    leased
}

/// Fills the queue like [`fill`]. If the backend supports batches, adds a batch of two
/// pieces, one of them leased. Returns the deliveries of all leased jobs.
pub(super) async fn fill_with_a_batch(queue: &dyn Queue) -> Vec<Delivery> {
    let mut held = Vec::new();
    if queue.batch_queue().is_some() {
        submit(queue, &telling("begun", 1), &["piece", "next piece"]).await;
        held = take(queue, 1).await;
    }
    held.push(fill(queue).await);
    held
}

/// The ids of the jobs that keep their results.
pub(super) fn kept_ids() -> [JobId; 5] {
    ["kept 1", "kept 2", "kept 3", "kept 4", "kept 5"].map(job_id)
}

/// The state of a job and its attempt.
pub(super) type JobPlace = (JobState, u32);

/// The state of each job, the status of each batch, the schedules of a queue, and what is
/// told of some jobs.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub(super) struct Places {
    /// The payload of each job, and where the job is.
    pub(super) jobs: BTreeMap<String, JobPlace>,
    pub(super) batches: BTreeMap<BatchId, BatchStatus>,
    pub(super) schedules: Vec<Schedule>,
    /// The records of the jobs [`kept_ids`].
    pub(super) results: BTreeMap<JobId, Option<JobResult>>,
}

/// Reads the state of each job. Panics if a job is in two states or the audit reports a
/// problem (R23).
pub(super) async fn places(queue: &dyn Queue) -> Places {
    let audit = queue.audit().await.expect("audited");
    assert_eq!(audit.problems, [""; 0]);
    let jobs = jobs(queue).await;
    assert_eq!(audit.jobs, jobs.len() as u64);
    let (batches, schedules) = (batches(queue).await, schedules(queue).await);
    Places { jobs, batches, schedules, results: results(queue).await }
}

async fn batches(queue: &dyn Queue) -> BTreeMap<BatchId, BatchStatus> {
    let Some(batches) = queue.batch_queue() else { return BTreeMap::new() };
    let found = batches.list_batches(None, many(100)).await.expect("listed");
    found.into_iter().map(|status| (status.id.clone(), status)).collect()
}

async fn schedules(queue: &dyn Queue) -> Vec<Schedule> {
    let Some(scheduler) = queue.schedule_queue() else { return Vec::new() };
    scheduler.schedules().await.expect("listed").schedules
}

async fn results(queue: &dyn Queue) -> BTreeMap<JobId, Option<JobResult>> {
    let Some(results) = queue.result_queue() else { return BTreeMap::new() };
    let told = results.read_results(&kept_ids()).await.expect("read");
    kept_ids().into_iter().zip(told).collect()
}

async fn jobs(queue: &dyn Queue) -> BTreeMap<String, JobPlace> {
    let mut places = BTreeMap::new();
    for state in
        [JobState::Scheduled, JobState::Ready, JobState::Leased, JobState::Dead]
    {
        let found = queue.peek(&PeekRequest::new(state, many(100))).await;
        let found = found.expect("peeked");
        assert_eq!(found.next, None, "one page holds them all");
        for job in found.jobs {
            let payload = String::from_utf8_lossy(&job.payload).into_owned();
            let before = places.insert(payload.clone(), (state, job.attempt));
            assert_eq!(before, None, "{payload} is in two places");
        }
    }
    places
}

/// Recovers until there is nothing left to recover.
pub(super) async fn recover_all(queue: &dyn Queue) {
    eventually("the end of recovery", async || {
        !queue.recover(many(100)).await.expect("recovered").more
    })
    .await;
}

pub(super) async fn is_sound(queue: &dyn Queue) {
    assert_eq!(queue.audit().await.expect("audited").problems, [""; 0]);
}

pub(super) fn payloads(deliveries: &[Delivery]) -> Vec<String> {
    let texts = deliveries.iter().map(|one| String::from_utf8_lossy(&one.payload));
    let mut texts: Vec<_> = texts.map(std::borrow::Cow::into_owned).collect();
    texts.sort();
    texts
}

/// Checks the condition again and again until it holds. Panics after [`PATIENCE`] with
/// a message that names `what`.
pub(super) async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "{what} did not happen");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A worker that finishes every job that it gets.
pub(super) struct RunningWorker {
    progress: Progress,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl RunningWorker {
    fn start(queue: Arc<dyn Queue>, lease: Duration, slots: NonZeroU32) -> Self {
        let stop = CancellationToken::new();
        let worker = Worker::new(queue)
            .lease(lease)
            .concurrency(slots)
            .stop_on(stop.clone().cancelled_owned());
        let progress = worker.progress();
        let task = tokio::spawn(async {
            let done = async |_: JobContext| Ok::<_, Failure>(());
            Box::pin(worker.run(done)).await.expect("the worker ends well");
        });
        Self { progress, stop, task }
    }

    /// Pushes a job through the given queue, and asserts that the worker runs it.
    pub(super) async fn works(&self, queue: &dyn Queue) {
        let done = self.progress.summary().done;
        eventually("a push", async || {
            queue.push(&[NewJob::new("work")], None).await.is_ok()
        })
        .await;
        eventually("the job's end", async || self.progress.summary().done > done).await;
    }

    /// Stops the worker and waits until it has ended.
    pub(super) async fn end(self) {
        self.stop.cancel();
        self.task.await.expect("the worker does not panic");
    }
}

/// Whether any client is blocked at the server by a command that waits.
pub(super) fn is_waited_at(server: &Server) -> bool {
    !clients(server, "flags=b").is_empty()
}

/// The ids of the server's clients whose line in CLIENT LIST contains `having`, except
/// the client that lists them.
pub(super) fn clients(server: &Server, having: &str) -> Vec<u64> {
    let answer = server.command(&[b"CLIENT", b"LIST", b"TYPE", b"normal"]);
    let list = String::from_utf8_lossy(&answer);
    list.lines()
        .filter(|line| line.contains("id=") && !line.contains("cmd=client"))
        .filter(|line| line.contains(having))
        .filter_map(|line| line.split(' ').find_map(|word| word.strip_prefix("id=")))
        .map(|id| id.parse().expect("ids are numbers"))
        .collect()
}
