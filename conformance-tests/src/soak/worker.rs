//! A worker process of the soak.

use std::{num::NonZeroU32, path::PathBuf, sync::Arc, time::Duration};

use relq_core::{Environment, QueueName};
use relq_worker::{Failure, JobContext, Worker};

use super::{
    child,
    plan::{self, HandlerPlan},
    record::{Kind, Recorder},
};
use crate::SuiteResult;

/// Handlers at once, and so how many jobs a kill can have repeated.
pub(super) const SLOTS: NonZeroU32 = NonZeroU32::new(16).expect("not zero");

/// Short, so that a dead worker's jobs are back soon; longer than any outage.
const LEASE: Duration = Duration::from_secs(3);
const REAP_EVERY: Duration = Duration::from_millis(500);

/// How long a job takes, at most: long enough that a kill hits some.
const LONGEST_JOB: Duration = Duration::from_millis(20);

/// How long a job that failed waits, at most.
const LONGEST_RETRY: Duration = Duration::from_millis(300);

/// Work the soak's jobs and write down what happens to them
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[arg(long)]
    queue: QueueName,

    /// The file to write to
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
