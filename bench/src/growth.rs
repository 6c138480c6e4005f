//! Measures the cost of one more job while a growing number of other jobs is in the
//! queue.

use std::{
    num::NonZeroU32,
    time::{Duration, Instant},
};

use relq::{ClaimRequest, Disposition, NewJob, QueueName, Settlement, WorkerId};
use serde::Serialize;

use crate::{
    failure::{CommandResult, Failure},
    plan::Plan,
    queue::QueueContender,
    sample::count,
};

/// How many jobs the measurement pushes, claims and finishes, one after the other, at
/// each queue size.
const CYCLES: u64 = 300;

/// The length of the leases, so long that none expires during the benchmark.
const LEASE: Duration = Duration::from_secs(3600);

/// The state of the other jobs in the queue during the measurement: waiting or leased.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Many {
    Waiting,
    Leased,
}

/// The measured cost of one more job, for a number of other jobs in the queue.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Growth {
    pub(crate) backend: String,
    pub(crate) many: Many,
    pub(crate) jobs: u64,
    pub(crate) us_per_job: f64,
    pub(crate) commands_per_job: Option<f64>,
    pub(crate) redis_cpu_us_per_job: Option<f64>,
}

/// Measures the cost of a job at each queue size of the plan. If filling the queue
/// takes too long, the results lack that size and all larger ones.
pub(crate) async fn measure(
    contender: &QueueContender,
    many: Many,
    plan: &Plan,
) -> CommandResult<Vec<Growth>> {
    let sizes = match many {
        Many::Waiting => &plan.waiting,
        Many::Leased => &plan.leased,
    };
    let mut growth = Vec::new();
    let mut there = 0;
    for size in sizes {
        if !grow(contender, many, there, *size, plan).await? {
            break;
        }
        there = *size;
        growth.push(cycles(contender, many, *size, plan).await?);
    }
    contender.clean_up().await?;
    Ok(growth)
}

/// Pushes jobs until the queue has `to` jobs. Returns false if the time limit was
/// reached before.
async fn grow(
    contender: &QueueContender,
    many: Many,
    from: u64,
    to: u64,
    plan: &Plan,
) -> CommandResult<bool> {
    let deadline = Instant::now() + 3 * plan.patience;
    let holder = worker("holder")?;
    let mut there = from;
    while there < to {
        if Instant::now() > deadline {
            return Ok(false);
        }
        let batch = (to - there).min(1000);
        let jobs: Vec<_> =
            (0..batch).map(|_| NewJob::new(vec![b'x'; plan.payload])).collect();
        contender.queue.push(&jobs, None).await?;
        if many == Many::Leased {
            lease(contender, &holder, batch, deadline).await?;
        }
        there += batch;
    }
    Ok(true)
}

async fn lease(
    contender: &QueueContender,
    holder: &WorkerId,
    jobs: u64,
    deadline: Instant,
) -> CommandResult {
    let mut left = u32::try_from(jobs).unwrap_or(u32::MAX);
    while let Some(max) = NonZeroU32::new(left) {
        let ask = ClaimRequest::new(holder.clone(), LEASE).max(max);
        let leased = contender.queue.claim(&ask).await?.len();
        left = left.saturating_sub(u32::try_from(leased).unwrap_or(u32::MAX));
        if leased == 0 && Instant::now() > deadline {
            return Err(Failure::Failed(format!("{left} jobs could not be claimed")));
        }
    }
    Ok(())
}

async fn cycles(
    contender: &QueueContender,
    many: Many,
    jobs: u64,
    plan: &Plan,
) -> CommandResult<Growth> {
    let ask = ClaimRequest::new(worker("worker")?, LEASE);
    let before = match &contender.meter {
        Some(meter) => Some((meter, meter.read().await?)),
        None => None,
    };
    let began = Instant::now();
    let mut done = 0;
    while done < CYCLES && (done == 0 || began.elapsed() < plan.patience) {
        contender.queue.push(&[NewJob::new(vec![b'x'; plan.payload])], None).await?;
        for delivery in contender.queue.claim(&ask).await? {
            let settlement = Settlement::new(delivery.receipt, Disposition::Done);
            contender.queue.settle(&[settlement]).await?;
            done += 1;
        }
    }
    let took = began.elapsed();
    let spent = match before {
        Some((meter, before)) => Some(meter.since(before).await?),
        None => None,
    };
    Ok(Growth {
        backend: contender.name().to_owned(),
        many,
        jobs,
        us_per_job: took.as_secs_f64() * 1e6 / count(done),
        commands_per_job: spent.map(|spent| count(spent.commands) / count(done)),
        redis_cpu_us_per_job: spent.map(|spent| spent.cpu_us / count(done)),
    })
}

pub(crate) fn worker(name: &str) -> CommandResult<WorkerId> {
    WorkerId::new(name).map_err(|error| Failure::Failed(error.to_string()))
}

/// The name of a queue that only the benchmark uses.
pub(crate) fn queue_name(random: &str) -> CommandResult<QueueName> {
    QueueName::new(format!("relq-bench-{random}"))
        .map_err(|error| Failure::Failed(error.to_string()))
}
