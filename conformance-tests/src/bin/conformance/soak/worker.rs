//! A worker process of the soak.

use std::{num::NonZeroU32, path::PathBuf, sync::Arc, time::Duration};

use relq_core::{QueueName, environment::Environment};
use relq_worker::{Failure, JobContext, Queues, Worker, WorkerQueue};

use super::{
    child,
    plan::{self, HandlerPlan},
    record::{Kind, Recorder},
};
use crate::SuiteResult;

/// How many handlers a worker runs in parallel. With the jobs that it has prefetched, so
/// many can be repeated after one kill.
pub(super) const SLOTS: NonZeroU32 = NonZeroU32::new(16).expect("not zero");

/// The lease of a worker: short, so that the jobs of a killed worker are soon ready
/// again, and longer than any outage.
const LEASE: Duration = Duration::from_secs(3);
const REAP_EVERY: Duration = Duration::from_millis(500);

/// The longest time that a job takes: long enough that some kills hit a running job.
const LONGEST_JOB: Duration = Duration::from_millis(20);

/// The longest delay before a failed job is retried.
const LONGEST_RETRY: Duration = Duration::from_millis(300);

/// Work on the soak's jobs and record what happens to them
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// A queue to serve; it is repeated for each
    #[arg(long, required = true)]
    queue: Vec<QueueName>,

    /// The file of records
    #[arg(long)]
    records: PathBuf,

    /// How many jobs are claimed ahead of the handlers
    #[arg(long)]
    prefetch: Option<NonZeroU32>,
}

impl Args {
    pub(crate) async fn run(self) -> SuiteResult<()> {
        let end = child::told_to_end();
        let environment = Environment::default();
        let worker = worker_on(&self.queue, &environment).await?;
        let soak_handler = Arc::new(SoakHandler {
            recorder: Recorder::open(&self.records)?,
            environment,
        });
        let worker = match self.prefetch {
            Some(jobs) => worker.prefetch(jobs),
            None => worker,
        };
        let worker = worker
            .concurrency(SLOTS)
            .lease(LEASE)
            .reap_every(REAP_EVERY)
            .stop_on(async { drop(end.await) });
        let running = worker.run(move |job| {
            let soak_handler = Arc::clone(&soak_handler);
            async move { soak_handler.work(&job).await }
        });
        Box::pin(running).await?;
        Ok(())
    }
}

/// A worker on the queues, whose weights are 1, 2 and so on. On one queue it is a plain
/// worker.
async fn worker_on(
    names: &[QueueName],
    environment: &Environment,
) -> SuiteResult<Worker> {
    if let [name] = names {
        return Ok(Worker::new(child::connect(name, environment).await?));
    }
    let mut queues = Vec::with_capacity(names.len());
    for (weight, name) in (1..).filter_map(NonZeroU32::new).zip(names) {
        let queue = child::connect(name, environment).await?;
        queues.push((WorkerQueue::new(name.clone(), queue), weight));
    }
    Ok(Worker::on(Queues::weighted(queues)))
}

struct SoakHandler {
    recorder: Recorder,
    environment: Environment,
}

impl SoakHandler {
    async fn work(&self, job: &JobContext) -> Result<(), Failure> {
        let attempt = job.attempt();
        let Some(number) = plan::number(job.payload()) else {
            self.recorder.write(Kind::Changed, 0, attempt)?;
            return Err(Failure::dead("the payload was changed"));
        };
        self.recorder.write(Kind::Start, number, attempt)?;
        self.environment.clock().sleep(self.draw(LONGEST_JOB)).await;
        match plan::plan(number) {
            HandlerPlan::SucceedsAfter(failures) if attempt > failures => {
                Ok(self.recorder.write(Kind::End, number, attempt)?)
            }
            _ => {
                self.recorder.write(Kind::Fail, number, attempt)?;
                Err(Failure::retry_after(self.draw(LONGEST_RETRY), "as planned"))
            }
        }
    }

    fn draw(&self, most: Duration) -> Duration {
        most.mul_f64(self.environment.random().fraction())
    }
}
