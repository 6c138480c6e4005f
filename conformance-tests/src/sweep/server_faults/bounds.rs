//! Tests that no single request about large jobs keeps the server busy for long.

use std::{num::NonZeroU16, time::Duration};

use relq_core::{
    ClaimRequest, Disposition, NewJob, Queue, ReliableQueueExt, Settlement,
    capabilities::Capability,
    operator::{JobState, Selection},
};

use super::{
    cost_log::{
        CostLog, Excesses, MostCost, assert_within_limits, extend, peek, settle,
    },
    fixture::{
        FaultFixture, eventually, is_sound, job_id, key, many, recover_all, take,
        worker_id,
    },
};
use crate::server::Server;

/// The number of bytes that one step of a call may move, unless a job is larger.
const STEP: usize = 1 << 20;

/// The most processor time of the server for a request that moves [`STEP`] bytes. Such a
/// step takes a few milliseconds.
const MOST_CPU: Duration = Duration::from_millis(12);

/// How long a result is kept that a test lets expire.
const BRIEFLY: Duration = Duration::from_millis(500);

/// A `max_attempts` that no job of this test reaches.
const ATTEMPTS: NonZeroU16 = NonZeroU16::MAX;

/// R21: while one client handles many large jobs, the server still answers the others
/// soon. Every script moves about a mebibyte of payloads, or a single job.
pub(super) async fn no_request_is_long_over_large_jobs(fixture: &FaultFixture) {
    // A single request that moved all jobs would take many times the allowed time.
    let jobs = LargeJobs { count: 32, payload: STEP };
    assert_within_limits(async || handle(fixture, jobs).await).await;
}

/// R21: a job that is larger than a step is alone in its step. The server's time for it
/// grows only with its size.
pub(super) async fn no_request_is_long_over_huge_jobs(fixture: &FaultFixture) {
    let jobs = LargeJobs { count: 2, payload: 16 * STEP };
    assert_within_limits(async || handle(fixture, jobs).await).await;
}

/// Makes each kind of call on large jobs.
async fn handle(fixture: &FaultFixture, jobs: LargeJobs) -> Excesses {
    let server = Server::start();
    let queue = &*fixture.connect(&server).await;
    let mut log = CostLog::new(&server, jobs.most_cost());
    jobs.push(queue).await;
    jobs.retry_and_release(queue, &mut log).await;
    jobs.bury_and_redrive(queue, &mut log).await;
    jobs.recover_and_end(queue, &mut log).await;
    jobs.remove(queue, &mut log).await;
    log.excesses()
}

/// R21: results that need not be kept any longer are removed in steps of about a mebibyte.
pub(super) async fn no_request_is_long_over_expired_results(fixture: &FaultFixture) {
    assert_within_limits(async || let_results_expire(fixture).await).await;
}

/// Lets large results expire, and removes them.
async fn let_results_expire(fixture: &FaultFixture) -> Excesses {
    let server = Server::start();
    let queue = &*fixture.connect(&server).await;
    let Some(results) = queue.result_queue() else { return Excesses::new() };
    let jobs = LargeJobs { count: 100, payload: STEP };
    let mut log = CostLog::new(&server, jobs.most_cost());
    let ids: Vec<_> =
        (0..jobs.count).map(|number| job_id(&format!("{number}"))).collect();
    for id in &ids {
        let job = NewJob::new("small").id(id.clone()).keep_result(BRIEFLY);
        queue.push_one(job).await.expect("pushed");
    }
    for one in take(queue, jobs.count).await {
        let done = Disposition::DoneWith { result: vec![b'x'; STEP].into() };
        queue.settle_one(&one.receipt, done).await.expect("settled");
    }
    eventually("the end of the last result's time", async || {
        let last =
            results.read_results(&ids[jobs.count - 1..]).await.expect("answered");
        last == [None]
    })
    .await;
    log.during("removal of expired results", recover_all(queue)).await;
    let keys = ["results", "kept"].map(|part| format!("{{{}}}:{part}", fixture.queue));
    let left = server.command(&[b"EXISTS", keys[0].as_bytes(), keys[1].as_bytes()]);
    assert_eq!(left, b":0\r\n", "R29: a recovery left results that nobody can read");
    log.excesses()
}

/// The jobs that a test handles: their number, and the size of each payload in bytes.
#[derive(Clone, Copy)]
struct LargeJobs {
    count: usize,
    payload: usize,
}

impl LargeJobs {
    fn most_cost(self) -> MostCost {
        let steps = u32::try_from(self.payload / STEP).expect("a few mebibytes");
        MostCost { cpu: MOST_CPU * steps, bytes: 2 * self.payload as u64 }
    }

    async fn retry_and_release(self, queue: &dyn Queue, log: &mut CostLog<'_>) {
        self.during_peek(log, "peek of ready jobs", queue, JobState::Ready).await;
        let held = log.during("claim", take(queue, self.count)).await;
        self.during_peek(log, "peek of leased jobs", queue, JobState::Leased).await;
        log.during("audit", is_sound(queue)).await;
        log.during("extension", extend(queue, &held)).await;
        let retry =
            || Disposition::Retry { after: Duration::ZERO, error: "again".into() };
        let failed: Vec<_> = held
            .iter()
            .map(|one| Settlement::new(one.receipt.clone(), retry()))
            .collect();
        log.during("retry", settle(queue, &failed)).await;
        log.during("promotion", recover_all(queue)).await;

        let held = take(queue, self.count).await;
        log.during("release", async {
            let released = queue.release_worker(&worker_id()).await.expect("released");
            assert_eq!(released.jobs, held.len() as u64);
        })
        .await;
        log.during("recovery of released jobs", recover_all(queue)).await;
    }

    async fn bury_and_redrive(self, queue: &dyn Queue, log: &mut CostLog<'_>) {
        let held = take(queue, self.count).await;
        let dead = || Disposition::Dead { error: "never".into() };
        let buried: Vec<_> = held
            .iter()
            .map(|one| Settlement::new(one.receipt.clone(), dead()))
            .collect();
        log.during("burial", settle(queue, &buried)).await;
        self.during_peek(log, "peek of dead jobs", queue, JobState::Dead).await;
        log.during("redrive", async {
            let redriven = queue.redrive(&Selection::All).await.expect("redriven");
            assert_eq!(redriven.moved, self.count as u64);
        })
        .await;
    }

    async fn recover_and_end(self, queue: &dyn Queue, log: &mut CostLog<'_>) {
        let short = Duration::from_millis(50);
        claim_all(queue, short).await;
        log.during("recovery", async {
            eventually("the end of all leases", async || {
                recover_all(queue).await;
                queue.stats().await.expect("answered").leased == 0
            })
            .await;
        })
        .await;

        let held = take(queue, self.count).await;
        let done: Vec<_> = held
            .iter()
            .map(|one| Settlement::new(one.receipt.clone(), Disposition::Done))
            .collect();
        log.during("end of jobs with side records", settle(queue, &done)).await;
    }

    async fn remove(self, queue: &dyn Queue, log: &mut CostLog<'_>) {
        self.push(queue).await;
        for one in take(queue, self.count).await {
            queue.bury(&one.receipt, "never").await.expect("buried");
        }
        log.during("purge of dead jobs", async {
            let purged = queue.purge_dead(&Selection::All).await.expect("purged");
            assert_eq!(purged, self.count as u64);
        })
        .await;
        self.push(queue).await;
        log.during("cancel of an unknown job", async {
            queue.cancel(&job_id("unknown")).await.expect("answered");
        })
        .await;
        log.during("purge", async { queue.purge().await.expect("purged") }).await;
    }

    /// Pushes the large jobs one by one, with an id and a key where the backend supports
    /// them.
    async fn push(self, queue: &dyn Queue) {
        let has_keys = queue.capabilities().supports(Capability::Unique);
        for number in 0..self.count {
            let job = NewJob::new(vec![b'x'; self.payload]).max_attempts(ATTEMPTS);
            let unique = has_keys.then(|| key(&format!("key {number}")));
            let job = unique.into_iter().fold(job, NewJob::unique);
            queue.push_one(job).await.expect("pushed");
        }
    }

    /// Reads all jobs in a state, page by page, and records each page that has more
    /// than one large payload.
    async fn during_peek(
        self,
        log: &mut CostLog<'_>,
        operation: &str,
        queue: &dyn Queue,
        state: JobState,
    ) {
        let pages = log.during(operation, peek(queue, state)).await;
        assert_eq!(pages.iter().sum::<usize>(), self.count, "{state:?} jobs are shown");
        let longest = pages.into_iter().max().unwrap_or_default();
        if longest > 1 {
            log.record(operation, format!("a page has {longest} jobs"));
        }
    }
}

/// Claims all jobs. Each lease has the length `lease`.
async fn claim_all(queue: &dyn Queue, lease: Duration) {
    let ask = ClaimRequest::new(worker_id(), lease).max(many(100));
    eventually("the claims of all jobs", async || {
        queue.claim(&ask).await.expect("claimed");
        queue.stats().await.expect("answered").ready == 0
    })
    .await;
}
