//! Measures what an idle worker costs, and how soon the jobs of a dead worker run
//! again.

use std::{
    num::NonZeroU32,
    sync::Arc,
    time::{Duration, Instant},
};

use relq::{
    ClaimRequest, NewJob,
    worker::{CancellationToken, Failure, JobContext, Worker},
};
use serde::Serialize;

use crate::{
    failure::CommandResult,
    growth::worker,
    plan::Plan,
    queue::{QueueContender, run},
    sample::count,
    tally::Tally,
    workload::TASKS,
};

/// The lease length of the worker that dies during the measurement.
const LEASE: Duration = Duration::from_secs(1);

/// How many jobs the worker holds when it dies.
const HELD: u32 = 100;

/// How long the measurement waits for a dead worker's jobs. Jobs that do not come back
/// within this time count as lost.
const LOST: Duration = Duration::from_secs(60);

/// The measurements of one backend: with an idle worker, and after a worker died.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct AtRest {
    pub(crate) backend: String,
    /// Commands per second that the server runs for an idle worker with 64 slots, also
    /// inside of scripts. `None` for SQLite, which has no server.
    pub(crate) idle_commands_per_s: Option<f64>,
    /// Milliseconds from the moment when the leases of a dead worker expire to the
    /// moment when another worker starts the last of its jobs. The leases last 1 s, and
    /// the reaper of the other worker runs every second.
    pub(crate) recovered_ms_after_lease: f64,
    /// Whether each job of the dead worker was handled exactly once.
    pub(crate) exact: bool,
}

pub(crate) async fn measure(
    contender: &QueueContender,
    plan: &Plan,
) -> CommandResult<AtRest> {
    let idle_commands_per_s = idle(contender, plan).await?;
    let (after_lease, exact) = recovery(contender, plan).await?;
    contender.clean_up().await?;
    Ok(AtRest {
        backend: contender.name().to_owned(),
        idle_commands_per_s,
        recovered_ms_after_lease: after_lease.as_secs_f64() * 1e3,
        exact,
    })
}

async fn idle(contender: &QueueContender, plan: &Plan) -> CommandResult<Option<f64>> {
    let Some(meter) = &contender.meter else { return Ok(None) };
    let done = CancellationToken::new();
    let worker = Worker::new(contender.queue.clone())
        .concurrency(TASKS)
        .stop_on(done.clone().cancelled_owned());
    let watch = async {
        tokio::time::sleep(Duration::from_millis(500)).await;
        let before = meter.read().await?;
        tokio::time::sleep(plan.idle).await;
        let spent = meter.since(before).await?;
        done.cancel();
        Ok(count(spent.commands) / plan.idle.as_secs_f64())
    };
    let nothing = |_: JobContext| std::future::ready(Ok::<_, Failure>(()));
    let (ended, rate): (CommandResult, CommandResult<f64>) =
        tokio::join!(run(worker, nothing), watch);
    ended?;
    rate.map(Some)
}

async fn recovery(
    contender: &QueueContender,
    plan: &Plan,
) -> CommandResult<(Duration, bool)> {
    let tally = Arc::new(Tally::new(HELD.into()));
    let job = |number| NewJob::new(tally.payload(number, plan.payload));
    let jobs: Vec<_> = (0..HELD.into()).map(job).collect();
    contender.queue.push(&jobs, None).await?;
    let all = NonZeroU32::new(HELD).expect("not zero");
    let ask = ClaimRequest::new(worker("dying")?, LEASE).max(all);
    let died = Instant::now();
    let mut held = 0;
    while held < jobs.len() {
        held += contender.queue.claim(&ask).await?.len();
    }

    let done = CancellationToken::new();
    let (all_done, seen) = (done.clone(), Arc::clone(&tally));
    let handler = move |job: JobContext| {
        if seen.handled(job.payload()) >= HELD.into() {
            done.cancel();
        }
        std::future::ready(Ok::<_, Failure>(()))
    };
    let survivor = Worker::new(contender.queue.clone())
        .concurrency(TASKS)
        .reap_every(Duration::from_secs(1))
        .stop_on(all_done.cancelled_owned())
        .stop_on(tokio::time::sleep(LOST));
    run(survivor, handler).await?;
    let after_lease = died.elapsed().saturating_sub(LEASE);
    Ok((after_lease, tally.is_exact(HELD.into())))
}
