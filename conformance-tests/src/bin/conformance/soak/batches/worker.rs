//! A worker process of the batch soak.

use std::{num::NonZeroU32, path::PathBuf, sync::Arc, time::Duration};

use relq_core::{QueueName, environment::Environment};
use relq_worker::{Failure, JobContext, Worker};

use super::super::{
    child,
    record::{Kind, Recorder},
};
use crate::SuiteResult;

/// How many handlers a worker runs in parallel, and so how many jobs one kill can cause
/// to be repeated.
pub(super) const SLOTS: NonZeroU32 = NonZeroU32::new(2).expect("not zero");

/// The lease of a worker: short, so that the slots of a killed worker are soon free
/// again.
const LEASE: Duration = Duration::from_secs(1);
const REAP_EVERY: Duration = Duration::from_millis(200);

/// The longest time that a job takes: long enough that some kills hit a running job.
const LONGEST_JOB: Duration = Duration::from_millis(8);

/// Work on the pieces of the soak and record what happens to them
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
        let recorder = Arc::new(Recorder::open(&self.records)?);
        let worker = Worker::new(queue)
            .concurrency(SLOTS)
            .lease(LEASE)
            .reap_every(REAP_EVERY)
            .stop_on(async { drop(end.await) });
        let running = worker.run(move |job| {
            let (recorder, environment) = (Arc::clone(&recorder), environment.clone());
            async move { work(&recorder, &environment, &job).await }
        });
        Box::pin(running).await?;
        Ok(())
    }
}

async fn work(
    recorder: &Recorder,
    environment: &Environment,
    job: &JobContext,
) -> Result<(), Failure> {
    let number = std::str::from_utf8(job.payload()).ok().and_then(|it| it.parse().ok());
    let Some(number) = number else {
        recorder.write(Kind::Changed, 0, job.attempt())?;
        return Err(Failure::dead("the payload was changed"));
    };
    recorder.write(Kind::Start, number, job.attempt())?;
    let pause = LONGEST_JOB.mul_f64(environment.random().fraction());
    environment.clock().sleep(pause).await;
    Ok(recorder.write(Kind::End, number, job.attempt())?)
}
