//! Calls of a victim that is a whole worker: it starts, runs jobs and stops.

use std::{future::pending, num::NonZeroU32, sync::Arc, time::Duration};

use relq_core::{
    Error,
    environment::{Environment, OsRandomness},
};
use relq_worker::{Failure, JobContext, Worker};

use super::{
    actors::LEASE,
    victim::{Ran, Victim},
};

/// The number of jobs that the worker has to run.
const JOBS: NonZeroU32 = NonZeroU32::new(3).expect("not zero");

/// How long the worker waits for its jobs when it stops: shorter than the leases.
const GRACE: Duration = Duration::from_secs(10);

/// Runs a worker until it has run every job, and then stops it.
pub(crate) async fn work(victim: Victim) -> Result<(), Error> {
    let (ran, all_ran) = (victim.ran.clone(), victim.ran.clone());
    let worker =
        worker(victim).stop_on(async move { all_ran.different(JOBS.get()).await });
    let handler = move |job: JobContext| {
        ran.add(job.payload());
        async { Ok::<_, Failure>(()) }
    };
    ends_well(worker.run(handler).await.map(drop));
    Ok(())
}

/// Starts a worker and stops it when all of its jobs have begun and none has ended, so
/// that it gives all of them back.
pub(crate) async fn stop_at_work(victim: Victim) -> Result<(), Error> {
    let started = Ran::default();
    let all_started = started.clone();
    let worker = worker(victim);
    let worker = worker.stop_on(async move { all_started.different(JOBS.get()).await });
    let handler = move |job: JobContext| {
        started.add(job.payload());
        pending::<Result<(), Failure>>()
    };
    ends_well(worker.run(handler).await.map(drop));
    Ok(())
}

fn worker(victim: Victim) -> Worker {
    let Victim { queue, clock, part } = victim;
    Worker::new(queue)
        .environment(Environment::new(Arc::new(clock), Arc::new(OsRandomness)))
        .worker_id(part.worker)
        .concurrency(JOBS)
        .lease(LEASE)
        .grace(GRACE)
}

/// Asserts that the worker ended without an error: it must survive one fault of the
/// store.
fn ends_well(ended: Result<(), relq_worker::WorkerError>) {
    ended.expect("a worker outlives a fault of the store");
}
