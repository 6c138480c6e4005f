//! Queues, workers and states for these tests.

use std::{
    collections::BTreeMap,
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use backend_zset::{ZsetConfig, ZsetQueue};
use conformance_tests::server::Server;
use queue_core::{
    ClaimRequest, Delivery, JobState, NewJob, PeekRequest, Queue, QueueName, WorkerId,
};
use queue_worker::{CancellationToken, Failure, JobContext, Progress, Worker};
use tokio::task::JoinHandle;

/// Longer than anything here takes.
pub(crate) const LEASE: Duration = Duration::from_secs(60);

/// How long is waited for what is sure to come.
const PATIENCE: Duration = Duration::from_secs(20);

pub(crate) async fn connect(server: &Server) -> Arc<dyn Queue> {
    let config = ZsetConfig::new(&server.url()).unwrap();
    Arc::new(
        ZsetQueue::connect(config, QueueName::new("faults").unwrap()).await.unwrap(),
    )
}

pub(crate) fn worker_id() -> WorkerId {
    WorkerId::new("worker").unwrap()
}

pub(crate) fn ask(max: u32) -> ClaimRequest {
    ClaimRequest::new(worker_id(), LEASE).max(NonZeroU32::new(max).unwrap())
}

pub(crate) async fn push_plain(queue: &dyn Queue, payloads: &[&'static str]) {
    let jobs: Vec<_> = payloads.iter().copied().map(NewJob::new).collect();
    queue.push(&jobs, None).await.unwrap();
}

/// The state, attempt and so on of each job, by payload.
pub(crate) type Places = BTreeMap<String, (JobState, u32)>;

/// Where each job is; fails when one is in two places, or when the audit finds fault.
pub(crate) async fn places(queue: &dyn Queue) -> Places {
    let audit = queue.audit().await.unwrap();
    assert_eq!(audit.problems, [""; 0]);
    let mut places = Places::new();
    let page = NonZeroU32::new(100).unwrap();
    for state in
        [JobState::Scheduled, JobState::Ready, JobState::Leased, JobState::Dead]
    {
        let found = queue.peek(&PeekRequest::new(state, page)).await.unwrap();
        assert_eq!(found.next, None, "one page holds them all");
        for job in found.jobs {
            let payload = String::from_utf8(job.payload.to_vec()).unwrap();
            let before = places.insert(payload.clone(), (state, job.attempt));
            assert_eq!(before, None, "{payload} is in two places");
        }
    }
    assert_eq!(audit.jobs, places.len() as u64);
    places
}

pub(crate) fn payloads(deliveries: &[Delivery]) -> Vec<&str> {
    deliveries.iter().map(|one| std::str::from_utf8(&one.payload).unwrap()).collect()
}

/// Looks again and again, for a limited time, until it is so.
pub(crate) async fn eventually(what: &str, mut is_so: impl AsyncFnMut() -> bool) {
    let began = Instant::now();
    while !is_so().await {
        assert!(began.elapsed() < PATIENCE, "{what} did not come about");
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

/// A worker on a queue of its own, which finishes whatever it is given.
pub(crate) struct RunningWorker {
    progress: Progress,
    stop: CancellationToken,
    task: JoinHandle<()>,
}

impl RunningWorker {
    /// Claims of it wait for a third of `lease`.
    pub(crate) async fn start(server: &Server, lease: Duration) -> Self {
        let stop = CancellationToken::new();
        let worker = Worker::new(connect(server).await)
            .lease(lease)
            .stop_on(stop.clone().cancelled_owned());
        let progress = worker.progress();
        let task = tokio::spawn(async {
            let done = async |_: JobContext| Ok::<_, Failure>(());
            Box::pin(worker.run(done)).await.unwrap();
        });
        Self { progress, stop, task }
    }

    /// Pushes a job by a queue of another's, and waits until the worker has done it.
    pub(crate) async fn works(&self, queue: &dyn Queue) {
        let done = self.progress.summary().done;
        eventually("a push", async || {
            queue.push(&[NewJob::new("work")], None).await.is_ok()
        })
        .await;
        eventually("the job's end", async || self.progress.summary().done > done).await;
    }

    /// Ends it in good order.
    pub(crate) async fn end(self) {
        self.stop.cancel();
        self.task.await.unwrap();
    }
}

/// The ids of the server's clients, but for the one that asks.
pub(crate) fn clients(server: &Server, having: &str) -> Vec<String> {
    let answer = server.command(&[b"CLIENT", b"LIST", b"TYPE", b"normal"]);
    let list = String::from_utf8(answer).unwrap();
    list.lines()
        .filter(|line| line.contains("id=") && !line.contains("cmd=client"))
        .filter(|line| line.contains(having))
        .filter_map(|line| line.split(' ').find_map(|word| word.strip_prefix("id=")))
        .map(ToOwned::to_owned)
        .collect()
}
