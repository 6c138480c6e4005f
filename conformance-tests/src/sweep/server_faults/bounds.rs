//! Large jobs: no call makes the server work for long without a pause.

use std::{num::NonZeroU16, time::Duration};

use relq_core::{
    ClaimRequest, Disposition, NewJob, Queue, ReliableQueueExt, Settlement,
    capabilities::Capability,
    operator::{JobState, PeekRequest, Selection},
    outcome::Settled,
};

use super::fixture::{
    FaultFixture, eventually, is_sound, job_id, key, many, recover_all, take, worker_id,
};
use crate::server::Server;

/// The size of a payload: as much as one step may move.
const PAYLOAD: usize = 1 << 20;

/// The number of jobs. A step that moved them all would take many times [`MOST_CPU`].
const JOBS: usize = 32;

/// More attempts than a job has here.
const ATTEMPTS: NonZeroU16 = NonZeroU16::MAX;

/// The most processor time of the server for one request, on average over an operation.
/// A step that moves one payload takes a few milliseconds. Unlike the time on a clock,
/// it does not depend on what else the machine does.
const MOST_CPU: Duration = Duration::from_millis(12);

/// The most bytes of a reply, on average over an operation.
const MOST_BYTES: u64 = 2 * PAYLOAD as u64;

/// R21: while one client handles many large jobs, the server still answers the others
/// soon. Every script moves about a mebibyte of payloads, or a single job.
pub(super) async fn no_request_is_long_over_large_jobs(fixture: &FaultFixture) {
    let server = Server::start();
    let queue = &*fixture.connect(&server).await;
    let mut log = CostLog { server: &server, excesses: Vec::new() };
    handle_large_jobs(queue, &mut log).await;
    assert_eq!(log.excesses, [""; 0]);
}

/// Handles large jobs in every way.
async fn handle_large_jobs(queue: &dyn Queue, log: &mut CostLog<'_>) {
    push(queue).await;
    retry_and_release(queue, log).await;
    bury_and_redrive(queue, log).await;
    recover_and_end(queue, log).await;
    remove(queue, log).await;
}

async fn retry_and_release(queue: &dyn Queue, log: &mut CostLog<'_>) {
    log.during_peek("peek of ready jobs", queue, JobState::Ready).await;
    let held = log.during("claim", take(queue, JOBS)).await;
    log.during_peek("peek of leased jobs", queue, JobState::Leased).await;
    log.during("audit", is_sound(queue)).await;
    let retry = || Disposition::Retry { after: Duration::ZERO, error: "again".into() };
    let failed: Vec<_> =
        held.iter().map(|one| Settlement::new(one.receipt.clone(), retry())).collect();
    log.during("retry", settle(queue, &failed)).await;
    log.during("promotion", recover_all(queue)).await;

    let held = take(queue, JOBS).await;
    log.during("release", async {
        let released = queue.release_worker(&worker_id()).await.expect("released");
        assert_eq!(released.jobs, held.len() as u64);
    })
    .await;
    log.during("recovery of released jobs", recover_all(queue)).await;
}

async fn bury_and_redrive(queue: &dyn Queue, log: &mut CostLog<'_>) {
    let held = take(queue, JOBS).await;
    let dead = || Disposition::Dead { error: "never".into() };
    let buried: Vec<_> =
        held.iter().map(|one| Settlement::new(one.receipt.clone(), dead())).collect();
    log.during("burial", settle(queue, &buried)).await;
    log.during_peek("peek of dead jobs", queue, JobState::Dead).await;
    log.during("redrive", async {
        let redriven = queue.redrive(&Selection::All).await.expect("redriven");
        assert_eq!(redriven.moved, JOBS as u64);
    })
    .await;
}

async fn recover_and_end(queue: &dyn Queue, log: &mut CostLog<'_>) {
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

    let held = take(queue, JOBS).await;
    let done: Vec<_> = held
        .iter()
        .map(|one| Settlement::new(one.receipt.clone(), Disposition::Done))
        .collect();
    log.during("end of jobs with side records", settle(queue, &done)).await;
}

async fn remove(queue: &dyn Queue, log: &mut CostLog<'_>) {
    push(queue).await;
    for one in take(queue, JOBS).await {
        queue.bury(&one.receipt, "never").await.expect("buried");
    }
    log.during("purge of dead jobs", async {
        let purged = queue.purge_dead(&Selection::All).await.expect("purged");
        assert_eq!(purged, JOBS as u64);
    })
    .await;
    push(queue).await;
    log.during("cancel of an unknown job", async {
        queue.cancel(&job_id("unknown")).await.expect("answered");
    })
    .await;
    log.during("purge", async { queue.purge().await.expect("purged") }).await;
}

/// The cost of operations for the server.
struct CostLog<'a> {
    server: &'a Server,
    /// The operations that cost more than they may, in words.
    excesses: Vec<String>,
}

/// The server's totals since it started.
struct Cost {
    cpu: Duration,
    requests: u64,
    bytes: u64,
}

impl CostLog<'_> {
    /// Carries out an operation, and notes it if a request of it costs too much.
    async fn during<T>(
        &mut self,
        operation: &str,
        calls: impl Future<Output = T>,
    ) -> T {
        let before = self.cost();
        let result = calls.await;
        let after = self.cost();
        let requests = u32::try_from(after.requests - before.requests).expect("few");
        let cpu = (after.cpu - before.cpu) / requests;
        let bytes = (after.bytes - before.bytes) / u64::from(requests);
        if cpu > MOST_CPU || bytes > MOST_BYTES {
            self.excesses.push(format!(
                "{operation}: {requests} requests, each of {cpu:?} of the server's \
                 processor time and {bytes} bytes of reply"
            ));
        }
        result
    }

    fn cost(&self) -> Cost {
        let info = self.server.command(&[b"INFO", b"cpu", b"stats"]);
        let info = String::from_utf8_lossy(&info).into_owned();
        let field = |name: &str| {
            let of = |line: &str| {
                line.strip_prefix(name)?.strip_prefix(':').map(str::to_owned)
            };
            info.lines().find_map(of).unwrap_or_else(|| panic!("INFO has {name}"))
        };
        let seconds =
            |name| Duration::from_secs_f64(field(name).parse().expect("a time"));
        let number = |name| field(name).parse().expect("a number");
        Cost {
            cpu: seconds("used_cpu_user_main_thread")
                + seconds("used_cpu_sys_main_thread"),
            requests: number("total_reads_processed"),
            bytes: number("total_net_output_bytes"),
        }
    }

    /// Reads all jobs in a state, page by page, and notes a page that has more than one
    /// large payload.
    async fn during_peek(
        &mut self,
        operation: &str,
        queue: &dyn Queue,
        state: JobState,
    ) {
        let pages = self.during(operation, peek(queue, state)).await;
        assert_eq!(pages.iter().sum::<usize>(), JOBS, "all {state:?} jobs are shown");
        let longest = pages.into_iter().max().unwrap_or_default();
        if longest > 1 {
            self.excesses.push(format!("{operation}: a page has {longest} jobs"));
        }
    }
}

/// Pushes large jobs one by one, with side records where the backend supports them.
async fn push(queue: &dyn Queue) {
    let has_keys = queue.capabilities().supports(Capability::Unique);
    for number in 0..JOBS {
        let job = NewJob::new(vec![b'x'; PAYLOAD]).max_attempts(ATTEMPTS);
        let unique = has_keys.then(|| key(&format!("key {number}")));
        let job = unique.into_iter().fold(job, NewJob::unique);
        queue.push_one(job).await.expect("pushed");
    }
}

/// Claims all jobs for a short time.
async fn claim_all(queue: &dyn Queue, lease: Duration) {
    let ask = ClaimRequest::new(worker_id(), lease).max(many(100));
    eventually("the claims of all jobs", async || {
        queue.claim(&ask).await.expect("claimed");
        queue.stats().await.expect("answered").ready == 0
    })
    .await;
}

async fn settle(queue: &dyn Queue, settlements: &[Settlement]) {
    for settled in queue.settle(settlements).await.expect("settled") {
        assert_eq!(settled, Settled::Applied);
    }
}

/// The number of jobs of each page of those in a state.
async fn peek(queue: &dyn Queue, state: JobState) -> Vec<usize> {
    let (mut pages, mut ask) = (Vec::new(), PeekRequest::new(state, many(100)));
    loop {
        let page = queue.peek(&ask).await.expect("peeked");
        pages.push(page.jobs.len());
        let Some(next) = page.next else { return pages };
        ask = ask.after(next);
    }
}
