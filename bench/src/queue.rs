//! A backend of relq as a contender. It uses relq's worker with default settings.

use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use relq::{
    NewJob, Queue, QueueName,
    worker::{self, CancellationToken, JobContext, Worker},
};
use tokio::sync::Notify;

use crate::{
    failure::{CommandResult, Failure},
    meter::Meter,
    plan::Plan,
    pushing::{Numbers, in_tasks},
    sample::Sample,
    tally::Tally,
    workload::{AHEAD, BATCH, CROWD, TASKS, Workload},
};

/// How long the benchmark waits until a new worker has become idle.
const FALLING_ASLEEP: Duration = Duration::from_millis(200);

/// The pause before each timed push, so that the worker is idle again when the job
/// arrives.
const NODDING_OFF: Duration = Duration::from_millis(2);

/// How long a worker may take to finish all pushed jobs. Jobs that are not finished by
/// then count as missing.
const DRAIN_LIMIT: Duration = Duration::from_secs(120);

/// A queue of one relq backend, which only the benchmark uses.
#[derive(Debug)]
pub(crate) struct QueueContender {
    name: String,
    pub(crate) queue: Arc<dyn Queue>,
    pub(crate) meter: Option<Meter>,
    tally: Arc<Tally>,
    pushed: u64,
}

impl QueueContender {
    /// Opens a queue of the given backend at `url`. `meter` reads the counters of the
    /// backend's server.
    pub(crate) async fn open(
        backend: &str,
        url: &str,
        queue: &QueueName,
        meter: Option<Meter>,
    ) -> CommandResult<Self> {
        Ok(Self {
            name: backend.to_owned(),
            queue: relq::connect(url, queue).await?,
            meter,
            tally: Arc::new(Tally::new(0)),
            pushed: 0,
        })
    }

    /// How many jobs the last push stored.
    pub(crate) fn pushed(&self) -> u64 {
        self.pushed
    }

    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    pub(crate) async fn clean_up(&self) -> CommandResult {
        self.queue.purge().await?;
        Ok(())
    }

    pub(crate) async fn run(
        &mut self,
        workload: Workload,
        plan: &Plan,
    ) -> CommandResult<Sample> {
        if workload == Workload::DrainAhead {
            self.begin(plan.many).push_batches(plan).await?;
        }
        let meter = self.meter.clone();
        let before = match &meter {
            Some(meter) => Some((meter, meter.read().await?)),
            None => None,
        };
        let began = Instant::now();
        let exact = match workload {
            Workload::PushOne => self.begin(plan.single).push_one(plan).await?,
            Workload::PushTasks => self.begin(plan.many).push_tasks(plan).await?,
            Workload::PushBatches => self.begin(plan.many).push_batches(plan).await?,
            Workload::DrainOne => self.drain(NonZeroU32::MIN).await?,
            Workload::DrainAhead => self.drain_ahead().await?,
            Workload::DrainTasks => self.drain(TASKS).await?,
            Workload::DrainBatches => self.drain(CROWD).await?,
            Workload::HandOver => self.begin(plan.handed).hand_over(plan).await?,
        };
        let took = began.elapsed();
        let spent = match before {
            Some((meter, before)) => Some(meter.since(before).await?),
            None => None,
        };
        let latencies = self.tally.latencies();
        Ok(Sample { jobs: self.pushed, took, latencies, spent, exact })
    }

    /// Prepares a push of this many jobs.
    pub(crate) fn begin(&mut self, jobs: u64) -> &mut Self {
        self.tally = Arc::new(Tally::new(jobs));
        self.pushed = jobs;
        self
    }

    async fn push_one(&mut self, plan: &Plan) -> CommandResult<Option<bool>> {
        let numbers = Numbers::below(self.pushed, plan.patience);
        push(&*self.queue, &self.tally, &numbers, plan.payload).await?;
        self.pushed = numbers.given();
        Ok(None)
    }

    async fn push_tasks(&mut self, plan: &Plan) -> CommandResult<Option<bool>> {
        let numbers = Numbers::below(self.pushed, plan.patience);
        let payload = plan.payload;
        in_tasks(|| {
            let (queue, tally) = (Arc::clone(&self.queue), Arc::clone(&self.tally));
            let numbers = numbers.clone();
            async move { push(&*queue, &tally, &numbers, payload).await }
        })
        .await?;
        self.pushed = numbers.given();
        Ok(None)
    }

    /// Pushes [`BATCH`] jobs a call, one call after the other.
    pub(crate) async fn push_batches(
        &mut self,
        plan: &Plan,
    ) -> CommandResult<Option<bool>> {
        let numbers = Numbers::below(self.pushed, plan.patience);
        while let Some(batch) = numbers.take_many(BATCH) {
            let job = |number| NewJob::new(self.tally.payload(number, plan.payload));
            let jobs: Vec<_> = batch.map(job).collect();
            self.queue.push(&jobs, None).await?;
        }
        self.pushed = numbers.given();
        Ok(None)
    }

    /// Runs all pushed jobs, and returns whether each was handled once.
    pub(crate) async fn drain(
        &self,
        concurrency: NonZeroU32,
    ) -> CommandResult<Option<bool>> {
        self.drain_with(|worker| worker.concurrency(concurrency)).await
    }

    /// Runs all pushed jobs one after the other, and claims up to [`AHEAD`] before their
    /// turn.
    async fn drain_ahead(&self) -> CommandResult<Option<bool>> {
        self.drain_with(|worker| worker.concurrency(NonZeroU32::MIN).prefetch(AHEAD))
            .await
    }

    async fn drain_with(
        &self,
        set: impl FnOnce(Worker) -> Worker,
    ) -> CommandResult<Option<bool>> {
        let (tally, jobs) = (Arc::clone(&self.tally), self.pushed);
        let done = CancellationToken::new();
        let all_done = done.clone();
        let handler = move |job: JobContext| {
            if tally.handled(job.payload()) >= jobs {
                done.cancel();
            }
            std::future::ready(Ok::<_, worker::Failure>(()))
        };
        let worker = set(Worker::new(self.queue.clone()))
            .stop_on(all_done.cancelled_owned())
            .stop_on(tokio::time::sleep(DRAIN_LIMIT));
        run(worker, handler).await?;
        Ok(Some(self.tally.is_exact(jobs)))
    }

    /// Pushes one job after the other to an idle worker, and times each delivery.
    async fn hand_over(&mut self, plan: &Plan) -> CommandResult<Option<bool>> {
        let (tally, arrived) = (Arc::clone(&self.tally), Arc::new(Notify::new()));
        let done = CancellationToken::new();
        let heard = Arc::clone(&arrived);
        let handler = move |job: JobContext| {
            tally.arrived(job.payload());
            heard.notify_one();
            std::future::ready(Ok::<_, worker::Failure>(()))
        };
        let worker = Worker::new(self.queue.clone())
            .concurrency(TASKS)
            .stop_on(done.clone().cancelled_owned());
        let producer = async {
            tokio::time::sleep(FALLING_ASLEEP).await;
            let numbers = Numbers::below(self.pushed, plan.patience);
            while let Some(number) = numbers.take() {
                tokio::time::sleep(NODDING_OFF).await;
                let job = NewJob::new(self.tally.payload(number, plan.payload));
                self.queue.push(&[job], None).await?;
                while self.tally.so_far() <= number {
                    arrived.notified().await;
                }
            }
            done.cancel();
            Ok(numbers.given())
        };
        let (ended, pushed): (CommandResult, CommandResult<u64>) =
            tokio::join!(run(worker, handler), producer);
        ended?;
        self.pushed = pushed?;
        Ok(Some(self.tally.is_exact(self.pushed)))
    }
}

async fn push(
    queue: &dyn Queue,
    tally: &Tally,
    numbers: &Numbers,
    payload: usize,
) -> CommandResult {
    while let Some(number) = numbers.take() {
        queue.push(&[NewJob::new(tally.payload(number, payload))], None).await?;
    }
    Ok(())
}

pub(crate) async fn run(
    worker: Worker,
    handler: impl relq::worker::Handler,
) -> CommandResult {
    let ended = Box::pin(worker.run(handler)).await;
    ended.map(drop).map_err(|error| Failure::Failed(format!("the worker: {error}")))
}
