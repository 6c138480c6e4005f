//! A worker process of the soak.

use std::{num::NonZeroU32, path::PathBuf, sync::Arc, time::Duration};

use relq_core::{QueueName, environment::Environment};
use relq_worker::{Failure, JobContext, Worker};

use super::{
    child,
    plan::{self, HandlerPlan},
    record::{Kind, Recorder},
};
use crate::SuiteResult;

/// How many handlers a worker runs in parallel, and so how many jobs one kill can cause
/// to be repeated.
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
    #[arg(long)]
    queue: QueueName,

    /// The file of records
    #[arg(long)]
    records: PathBuf,
}

impl Args {
    pub(crate) async fn run(self) -> SuiteResult<()> {
        let end = child::told_to_end();
        let environment = Environment::default();
        let queue = child::connect(&self.queue, &environment).await?;
        let soak_handler = Arc::new(SoakHandler {
            recorder: Recorder::open(&self.records)?,
            environment,
        });
        let worker = Worker::new(queue)
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
