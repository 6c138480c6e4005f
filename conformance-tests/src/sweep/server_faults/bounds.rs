//! Large jobs: no call makes the server work for long without a pause.

use std::{collections::BTreeSet, num::NonZeroU16, time::Duration};

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

/// The number of jobs. A step that moved them all would take many times [`LONGEST`].
const JOBS: usize = 24;

/// The longest that one command may take at the server. A step that moves one payload
/// takes a few milliseconds, and some more on a busy machine.
const LONGEST: Duration = Duration::from_millis(30);

/// More attempts than a job has here.
const ATTEMPTS: NonZeroU16 = NonZeroU16::MAX;

/// How often an operation that was slow is tried again. The times of a busy machine
/// vary, but a step over all jobs is slow each time.
const ROUNDS: usize = 3;

/// R21: while one client handles many large jobs, the server still answers the others
/// soon. Every script moves about a mebibyte of payloads, or a single job.
pub(super) async fn no_command_is_long_over_large_jobs(fixture: &FaultFixture) {
    let mut slow = round(fixture).await;
    for _ in 1..ROUNDS {
        if slow.is_empty() {
            return;
        }
        let again = round(fixture).await;
        slow.retain(|(operation, _)| again.iter().any(|(other, _)| other == operation));
    }
    assert!(slow.is_empty(), "commands took longer than {LONGEST:?}: {slow:#?}");
}

/// Handles large jobs in every way. Returns the operations that had a slow command,
/// each with the server's own words about it.
async fn round(fixture: &FaultFixture) -> BTreeSet<(&'static str, String)> {
    let server = Server::start();
    let queue = &*fixture.connect(&server).await;
    let limit = LONGEST.as_micros().to_string();
    server.command(&[b"CONFIG", b"SET", b"slowlog-log-slower-than", limit.as_bytes()]);
    let mut log = SlowLog { server: &server, slow: BTreeSet::new() };

    push(queue).await;
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
    log.slow
}

/// The server's log of slow commands.
struct SlowLog<'a> {
    server: &'a Server,
    slow: BTreeSet<(&'static str, String)>,
}

impl SlowLog<'_> {
    /// Carries out an operation, and notes it if the server needed long for one of its
    /// commands.
    async fn during<T>(
        &mut self,
        operation: &'static str,
        calls: impl Future<Output = T>,
    ) -> T {
        self.server.command(&[b"SLOWLOG", b"RESET"]);
        let result = calls.await;
        let logged = self.server.command(&[b"SLOWLOG", b"GET", b"1"]);
        if logged != b"*0\r\n" {
            let words = String::from_utf8_lossy(&logged).replace("\r\n", " ");
            let words = words.chars().filter(|symbol| !symbol.is_control()).take(200);
            self.slow.insert((operation, words.collect()));
        }
        result
    }

    /// Reads all jobs in a state, page by page, and notes a page that has more than one
    /// large payload.
    async fn during_peek(
        &mut self,
        operation: &'static str,
        queue: &dyn Queue,
        state: JobState,
    ) {
        let pages = self.during(operation, peek(queue, state)).await;
        assert_eq!(pages.iter().sum::<usize>(), JOBS, "all {state:?} jobs are shown");
        let longest = pages.into_iter().max().unwrap_or_default();
        if longest > 1 {
            self.slow.insert((operation, format!("a page has {longest} jobs")));
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
