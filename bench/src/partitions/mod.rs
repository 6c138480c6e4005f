//! Measures queues of several parts: how much time each node of a cluster spends on a
//! job.
//!
//! The parts of a queue are on different nodes, and the work grows with them: each
//! part has as many jobs and handlers as the only part of an ordinary queue. So each of
//! P nodes should spend a P-th of the time on each job of the queue.

mod cluster;
mod report;

use std::{
    num::{NonZeroU16, NonZeroU32},
    time::{Duration, Instant},
};

use relq::{
    environment::Environment,
    worker::{self, CancellationToken, JobContext, Worker},
};

use crate::{
    failure::CommandResult,
    meter::Reading,
    plan::Plan,
    queue::{QueueContender, run},
    spent::Spent,
    workload::TASKS,
};
use cluster::Cluster;
pub(crate) use report::Report;

/// How long the benchmark waits until a new worker has become idle.
const FALLING_ASLEEP: Duration = Duration::from_millis(500);

/// Whether a queue of that backend can have several parts.
pub(crate) fn has_parts(backend: &str) -> bool {
    !["sqlite", "keyspace"].contains(&backend)
}

/// Measures each of the backends with each number of parts, in turn.
pub(crate) async fn measure(
    backends: &[String],
    partitions: &[NonZeroU16],
    plan: &Plan,
) -> CommandResult<Report> {
    let most = partitions.iter().max().copied().unwrap_or(NonZeroU16::MIN);
    let cluster = Cluster::start(most.get().into()).await?;
    let random = Environment::default().random().text(12);
    let mut report = Report::default();
    for backend in backends {
        let mut runs = vec![Vec::new(); partitions.len()];
        for _ in 0..plan.repetitions {
            for (runs, partitions) in runs.iter_mut().zip(partitions) {
                let queue =
                    Queue::open(&cluster, backend, *partitions, &random).await?;
                runs.push(queue.measure(plan).await?);
            }
        }
        for (runs, partitions) in runs.iter().zip(partitions) {
            report.add(backend, *partitions, runs);
        }
    }
    Ok(report)
}

/// The measurements of one run on a queue.
#[derive(Debug, Clone)]
struct Run {
    push: Phase,
    drain: Phase,
    /// A worker without jobs.
    idle: Phase,
    /// Whether each job was handled exactly once.
    exact: bool,
}

/// The measurements of one part of a run: the push, the drain, or the idle time.
#[derive(Debug, Clone)]
struct Phase {
    /// How many jobs the queue got in this run.
    jobs: u64,
    took: Duration,
    nodes: Vec<Spent>,
}

/// The counters of the nodes before a phase.
struct Before {
    at: Instant,
    nodes: Vec<Reading>,
}

/// A queue that only one run uses.
struct Queue<'a> {
    cluster: &'a Cluster,
    contender: QueueContender,
    partitions: NonZeroU16,
}

impl<'a> Queue<'a> {
    async fn open(
        cluster: &'a Cluster,
        backend: &str,
        partitions: NonZeroU16,
        random: &str,
    ) -> CommandResult<Self> {
        // Another number of parts must not find the queue of this one.
        let prefix = format!("relq-bench-{backend}-{partitions}-{random}");
        let name = cluster.spread(&prefix, partitions.get()).await?;
        let url = cluster.url_of(backend, partitions.get());
        let contender = QueueContender::open(backend, &url, &name, None).await?;
        Ok(Self { cluster, contender, partitions })
    }

    async fn measure(mut self, plan: &Plan) -> CommandResult<Run> {
        let handlers = TASKS.saturating_mul(NonZeroU32::from(self.partitions));
        let before = self.read().await?;
        let jobs = plan.many * u64::from(self.partitions.get());
        self.contender.begin(jobs).push_batches(plan).await?;
        let push = self.phase(&before).await?;
        let before = self.read().await?;
        let exact = self.contender.drain(handlers).await? == Some(true);
        let drain = self.phase(&before).await?;
        let idle = self.idle(handlers, plan.idle).await?;
        self.contender.clean_up().await?;
        Ok(Run { push, drain, idle, exact })
    }

    /// Reads the counters of each node.
    async fn read(&self) -> CommandResult<Before> {
        let mut nodes = Vec::new();
        for meter in &self.cluster.meters {
            nodes.push(meter.read().await?);
        }
        Ok(Before { at: Instant::now(), nodes })
    }

    async fn phase(&self, before: &Before) -> CommandResult<Phase> {
        let took = before.at.elapsed();
        let mut nodes = Vec::new();
        for (meter, before) in self.cluster.meters.iter().zip(&before.nodes) {
            nodes.push(meter.since(*before).await?);
        }
        Ok(Phase { jobs: self.contender.pushed(), took, nodes })
    }

    /// Measures what a worker without jobs costs.
    async fn idle(&self, slots: NonZeroU32, length: Duration) -> CommandResult<Phase> {
        let done = CancellationToken::new();
        let worker = Worker::new(self.contender.queue.clone())
            .concurrency(slots)
            .stop_on(done.clone().cancelled_owned());
        let watch = async {
            tokio::time::sleep(FALLING_ASLEEP).await;
            let before = self.read().await?;
            tokio::time::sleep(length).await;
            let phase = self.phase(&before).await?;
            done.cancel();
            Ok(phase)
        };
        let nothing = |_: JobContext| std::future::ready(Ok::<_, worker::Failure>(()));
        let (ended, phase): (CommandResult, CommandResult<Phase>) =
            tokio::join!(run(worker, nothing), watch);
        ended?;
        phase
    }
}
