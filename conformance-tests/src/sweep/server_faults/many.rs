//! Tests that no request takes longer because the queue has many jobs.

use std::time::Duration;

use relq_core::{
    Disposition, NewJob, Queue, Settlement,
    limits::MAX_JOBS_PER_CALL,
    operator::{JobState, PeekRequest},
};

use super::{
    cost_log::{CostLog, Excesses, MostCost, assert_within_limits, extend, settle},
    fixture::{
        FaultFixture, eventually, is_sound, job_id, recover_all, take, worker_id,
    },
};
use crate::server::Server;

/// A command that reads all 100,000 jobs takes longer than `cpu`.
const MOST_COST: MostCost = MostCost { cpu: Duration::from_millis(5), bytes: 1 << 20 };

/// The number of jobs in each claim, extension and settlement.
const CALL: usize = MAX_JOBS_PER_CALL.get() as usize;

/// R21: while one client works on a long queue, the server still answers the others
/// soon. No command reads more than a page of the jobs.
pub(super) async fn no_request_is_long_in_a_long_queue(fixture: &FaultFixture) {
    assert_within_limits(async || work_on(fixture, 100_000).await).await;
}

/// The same test with many more jobs, so that it also notices a command whose time grows
/// with the logarithm of their number.
pub(super) async fn no_request_is_long_in_a_queue_of_a_million(fixture: &FaultFixture) {
    assert_within_limits(async || work_on(fixture, 1_000_000).await).await;
}

/// Makes each kind of call on a queue with this many jobs.
async fn work_on(fixture: &FaultFixture, jobs: usize) -> Excesses {
    let server = Server::start();
    let queue = &*fixture.connect(&server).await;
    let mut log = CostLog::new(&server, MOST_COST);
    log.during("push", push(queue, jobs)).await;
    read(queue, &mut log, JobState::Ready).await;
    log.during("cancel of an unknown job", async {
        queue.cancel(&job_id("unknown")).await.expect("answered");
    })
    .await;
    log.during("audit", is_sound(queue)).await;
    lease_and_settle(queue, &mut log).await;
    lease_and_release(queue, &mut log).await;
    log.during("purge", async { queue.purge().await.expect("purged") }).await;
    log.excesses()
}

/// Pushes jobs with a payload of a few bytes, as many in each call as a call may have.
async fn push(queue: &dyn Queue, jobs: usize) {
    for _ in 0..jobs / CALL {
        let call: Vec<_> = (0..CALL).map(|_| NewJob::new("payload")).collect();
        queue.push(&call, None).await.expect("pushed");
    }
}

/// Reads the counts of the queue and one page of its jobs.
async fn read(queue: &dyn Queue, log: &mut CostLog<'_>, state: JobState) {
    log.during("stats", async { queue.stats().await.expect("answered") }).await;
    let ask = PeekRequest::new(state, MAX_JOBS_PER_CALL);
    let operation = format!("peek of {state:?} jobs");
    log.during(&operation, async { queue.peek(&ask).await.expect("peeked") }).await;
}

/// Claims jobs, and settles them in every way.
async fn lease_and_settle(queue: &dyn Queue, log: &mut CostLog<'_>) {
    let held = log.during("claim", take(queue, CALL)).await;
    read(queue, log, JobState::Leased).await;
    log.during("extension", extend(queue, &held)).await;
    let fifth = CALL / 5;
    let retry = |after| Disposition::Retry { after, error: "again".into() };
    let each = [
        ("end", Disposition::Done),
        ("retry", retry(Duration::ZERO)),
        ("retry with a delay", retry(Duration::from_millis(1))),
        ("postponement", Disposition::Postpone { after: Duration::from_millis(1) }),
        ("burial", Disposition::Dead { error: "never".into() }),
    ];
    for ((operation, disposition), held) in each.into_iter().zip(held.chunks(fifth)) {
        let settlement = |receipt| Settlement::new(receipt, disposition.clone());
        let all: Vec<_> =
            held.iter().map(|one| settlement(one.receipt.clone())).collect();
        log.during(operation, settle(queue, &all)).await;
    }
    read(queue, log, JobState::Dead).await;
    log.during("promotion", async {
        eventually("the end of the delay", async || {
            recover_all(queue).await;
            queue.stats().await.expect("answered").scheduled == 0
        })
        .await;
    })
    .await;
}

/// Claims jobs, and releases their worker.
async fn lease_and_release(queue: &dyn Queue, log: &mut CostLog<'_>) {
    let held = take(queue, CALL).await;
    log.during("release", async {
        let released = queue.release_worker(&worker_id()).await.expect("released");
        assert_eq!(released.jobs, held.len() as u64);
    })
    .await;
    log.during("recovery", recover_all(queue)).await;
}
