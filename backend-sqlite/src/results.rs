//! Results and progress of jobs (R29).
//!
//! ```text
//!  push            results: a row               unfinished
//!  progress        results: the value           unfinished, with a report
//!  burial          jobs: the state              dead; until it is purged or redriven
//!  the end         results: how, the result,    done, discarded, cancelled or purged
//!                           kept until
//!  recover, push   rows that were kept long enough are removed
//! ```
//!
//! The transaction that removes a job records how it ended. Whether a job that has not
//! ended is dead, and why, is read from the job itself, so that no statement that buries
//! jobs, one or many, can forget to record it.

use std::time::Duration;

use async_trait::async_trait;
use relq_core::{
    Bytes, Error, JobId, Receipt, ReliableQueue as _,
    capabilities::ClaimBytes,
    error::Operation,
    operator::JobState,
    results::{JobResult, Reported, ResultQueue},
};

use crate::call::Call;
use crate::failure::Failure;
use crate::give_back::find_held;
use crate::queue::SqliteQueue;
use crate::statements::ResultRow;
use crate::store::Store;

/// How long a waiting call sleeps before it reads the result again although nothing woke
/// it. The task that looks for ends in other processes stops with the runtime of the call
/// that started it.
const RECHECK: Duration = Duration::from_secs(10);

/// Stores what a worker reports of a job that it holds.
struct Report {
    receipt: Receipt,
    progress: Vec<u8>,
}

impl Call for Report {
    type Answer = Reported;

    fn bytes(&self) -> usize {
        self.progress.len()
    }

    fn run(&self, store: &Store<'_>) -> Result<Reported, Failure> {
        let Some(held) = find_held(store, [&self.receipt])?.into_values().next() else {
            return Ok(Reported::LeaseLost);
        };
        if held.remembered.keep_ms.is_none() {
            return Ok(Reported::NotKept);
        }
        store.set_progress(&held.remembered.id, Some(&self.progress))?;
        Ok(Reported::Stored)
    }
}

/// Reads what became of the first of these jobs, until the results are large.
struct Read {
    jobs: Vec<JobId>,
}

impl Call for Read {
    type Answer = Vec<Option<JobResult>>;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<Self::Answer>, Failure> {
        self.run(store).map(Some)
    }

    fn run(&self, store: &Store<'_>) -> Result<Self::Answer, Failure> {
        let (mut found, mut bytes) = (Vec::new(), ClaimBytes::default());
        for job in &self.jobs {
            let result = read(store, job)?;
            if !bytes.take(result.as_ref().map_or(0, size)) {
                break;
            }
            found.push(result);
        }
        Ok(found)
    }
}

fn read(store: &Store<'_>, job: &JobId) -> Result<Option<JobResult>, Failure> {
    let Some(row) = store.read_result(job.as_str())? else { return Ok(None) };
    result(row).map(Some).ok_or_else(|| {
        Failure::unusable(format!("the result of job {job} is damaged; run an audit"))
    })
}

fn result(row: ResultRow) -> Option<JobResult> {
    let ResultRow { ended_as, value, leader, state, reason } = row;
    let leader = leader.map(JobId::new).transpose().ok()?;
    let value = value.map(Into::into);
    Some(match ended_as.as_deref() {
        Some("done") => JobResult::Done { result: value? },
        Some("discarded") => JobResult::Discarded,
        Some("cancelled") => JobResult::Cancelled { leader },
        Some("purged") => JobResult::Purged,
        Some(_) => return None,
        None if state? == JobState::Dead.as_str() => JobResult::Dead { error: reason? },
        None => JobResult::Unfinished { progress: value },
    })
}

fn size(result: &JobResult) -> usize {
    match result {
        JobResult::Unfinished { progress } => progress.as_ref().map_or(0, Bytes::len),
        JobResult::Done { result } => result.len(),
        JobResult::Dead { error } => error.len(),
        _ => 0,
    }
}

impl SqliteQueue {
    async fn read_pages(
        &self,
        jobs: &[JobId],
    ) -> Result<Vec<Option<JobResult>>, Failure> {
        let page = self.max_jobs_per_step();
        let (thread, mut found) = (self.reading_thread().await?, Vec::new());
        while found.len() < jobs.len() {
            let jobs = jobs[found.len()..].iter().take(page).cloned().collect();
            found.extend(thread.call(Read { jobs }).await?);
        }
        Ok(found)
    }

    async fn wait_for_end(
        &self,
        job: &JobId,
        timeout: Duration,
    ) -> Result<Option<JobResult>, Failure> {
        let clock = self.environment().clock();
        let deadline = clock.elapsed().saturating_add(timeout);
        loop {
            // Listen before the read, so that an end after the read wakes the call.
            let mut end = self.listen_for_end(job);
            let call = Read { jobs: vec![job.clone()] };
            let found = self.db_thread().call(call).await?.pop().flatten();
            let left = deadline.saturating_sub(clock.elapsed());
            if left.is_zero() || found.as_ref().is_none_or(JobResult::has_ended) {
                return Ok(found);
            }
            let _polled = self.poll_ends();
            tokio::select! {
                () = end.woken() => {}
                () = clock.sleep(left.min(RECHECK)) => {}
            }
        }
    }
}

#[async_trait]
impl ResultQueue for SqliteQueue {
    async fn report_progress(
        &self,
        receipt: &Receipt,
        progress: &[u8],
    ) -> Result<Reported, Error> {
        self.capabilities().check_progress(progress)?;
        let call = Report { receipt: receipt.clone(), progress: progress.to_vec() };
        self.db_thread().call(call).await.map_err(|it| it.at(Operation::ReportProgress))
    }

    async fn read_results(
        &self,
        jobs: &[JobId],
    ) -> Result<Vec<Option<JobResult>>, Error> {
        self.capabilities().check_batch(Operation::ReadResults, jobs.len())?;
        self.read_pages(jobs).await.map_err(|it| it.at(Operation::ReadResults))
    }

    async fn wait_result(
        &self,
        job: &JobId,
        timeout: Duration,
    ) -> Result<Option<JobResult>, Error> {
        self.capabilities().check_wait_result(timeout)?;
        let waited = self.wait_for_end(job, timeout).await;
        waited.map_err(|it| it.at(Operation::WaitResult))
    }
}
