//! The hidden command that runs a worker process of the demo.

use std::{
    io::{self, Read},
    num::NonZeroU32,
    path::PathBuf,
    process,
    sync::Arc,
    thread,
    time::Duration,
};

use relq::{
    QueueName,
    environment::Environment,
    schedule::scheduled_for,
    worker::{Failure as JobFailure, JobContext, Queues, Worker, WorkerQueue},
};

use super::{
    record::{Kind, Recorder},
    schedules::number_of,
};
use crate::{
    failure::{CommandResult, Failure},
    target::Target,
    work::Schedulers,
};

/// The lease of a demo worker: short, so that a killed worker's jobs are recovered
/// soon.
const LEASE: Duration = Duration::from_secs(1);
const REAP_EVERY: Duration = Duration::from_millis(500);

/// The maximum number of jobs that a worker runs at the same time.
pub(super) const CONCURRENCY: NonZeroU32 = NonZeroU32::new(16).expect("not zero");

/// The shortest and the longest time of a job: long enough that a kill hits running
/// jobs.
const JOB_TAKES: (Duration, Duration) =
    (Duration::from_millis(20), Duration::from_millis(60));

/// Run the demo's jobs and record their starts and ends
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The file that receives the records
    #[arg(long)]
    records: PathBuf,

    /// A queue to serve; repeat it for each queue
    #[arg(long, value_name = "NAME", required = true)]
    serve: Vec<QueueName>,

    /// Run a scheduler, too; the jobs are numbered by their ticks
    #[arg(long)]
    schedules: bool,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        end_with_the_demo();
        let worker = worker_on(&self.serve, target).await?;
        let schedulers = if self.schedules {
            let name = &self.serve[0];
            let queue = target.open_named(name).await?;
            Schedulers::start(std::iter::once((name, &queue)))?
        } else {
            Schedulers::default()
        };
        let recorder = Recorder::create(&self.records).map_err(|error| {
            Failure::Failed(format!("{:?} cannot be made: {error}", self.records))
        })?;
        let recorder = Arc::new(recorder);
        let environment = Environment::default();
        let worker = worker
            .concurrency(CONCURRENCY)
            .lease(LEASE)
            .reap_every(REAP_EVERY)
            .stop_on(schedulers.ended());
        let running = worker.run(move |job| {
            let (recorder, environment) = (Arc::clone(&recorder), environment.clone());
            async move { work(&job, &recorder, &environment).await }
        });
        match Box::pin(running).await {
            Ok(_) => {
                schedulers.message().map_or(Ok(()), |why| Err(Failure::Failed(why)))
            }
            Err(error) => Err(Failure::Failed(error.to_string())),
        }
    }
}

/// Creates a worker that serves all of the queues. The first queue has the weight 1, the
/// second one the weight 2, and so on. For a single queue it creates a worker on that
/// queue alone.
async fn worker_on(names: &[QueueName], target: &Target) -> CommandResult<Worker> {
    if let [name] = names {
        return Ok(Worker::new(target.open_named(name).await?));
    }
    let mut queues = Vec::with_capacity(names.len());
    for (weight, name) in (1..).filter_map(NonZeroU32::new).zip(names) {
        let queue = target.open_named(name).await?;
        queues.push((WorkerQueue::new(name.clone(), queue), weight));
    }
    Ok(Worker::on(Queues::weighted(queues)))
}

async fn work(
    job: &JobContext,
    recorder: &Recorder,
    environment: &Environment,
) -> Result<(), JobFailure> {
    let number = match scheduled_for(job.headers()) {
        Some(tick) => number_of(tick),
        None => std::str::from_utf8(job.payload())?.parse()?,
    };
    recorder.write(Kind::Start, number)?;
    let (least, most) = JOB_TAKES;
    let takes = least + (most - least).mul_f64(environment.random().fraction());
    environment.clock().sleep(takes).await;
    recorder.write(Kind::End, number)?;
    Ok(())
}

/// Ends this process as soon as the demo has ended or was killed. This thread waits for
/// the end of standard input, a pipe whose other end the demo holds open.
fn end_with_the_demo() {
    thread::spawn(|| {
        let _ = io::stdin().read(&mut [0]);
        process::exit(1);
    });
}
