//! Implements the calls that find a job, run it now, and list the workers (R31 to R33).

use std::num::NonZeroU32;

use async_trait::async_trait;
use relq_core::{
    Bytes, Error, JobId, WorkerId,
    environment::Timestamp,
    error::Operation,
    operator::{
        InspectQueue, JobLookup, JobRecord, JobState, PageCursor, RunNow, WorkerReport,
        WorkerView, WorkersPage,
    },
};

use crate::batch::maintenance;
use crate::call::Call;
use crate::failure::Failure;
use crate::peek;
use crate::queue::SqliteQueue;
use crate::statements::{JobRead, ScheduledRow, WorkerRow};
use crate::store::Store;

/// The beginning of a cursor of [`Workers`]. It tells such a cursor from one of a listing
/// of jobs.
const WORKERS_CURSOR: &str = "w:";

/// How much later than the time of its transaction the newest report can be that a listing
/// reads: another process may store it after this one has read the clock.
const SEEN_LATER_MS: i64 = 1000;

/// Looks for a job by its id.
struct LookUp {
    job: JobId,
}

impl Call for LookUp {
    type Answer = JobLookup;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<JobLookup>, Failure> {
        self.run(store).map(Some)
    }

    fn run(&self, store: &Store<'_>) -> Result<JobLookup, Failure> {
        let id = self.job.as_str();
        if let Some(found) = store.read_job(id)? {
            let record = record(store, id, found)?;
            return Ok(JobLookup::Stored(Box::new(record)));
        }
        Ok(match store.find_ended(id)? {
            Some(ended) => JobLookup::Ended {
                was_done: ended.was_done,
                until: Timestamp::from_unix_ms(ended.until),
            },
            None => JobLookup::Unknown,
        })
    }
}

fn record(
    store: &Store<'_>,
    id: &str,
    JobRead { state, job }: JobRead,
) -> Result<JobRecord, Failure> {
    let job = peek::view(state_of(&state)?, job)?;
    let followers = store.followers_of(id)?.into_iter();
    let followers = followers.filter_map(|id| JobId::new(id).ok()).collect();
    Ok(JobRecord::new(job, followers))
}

fn state_of(word: &str) -> Result<JobState, Failure> {
    [JobState::Scheduled, JobState::Ready, JobState::Leased, JobState::Dead]
        .into_iter()
        .find(|state| state.as_str() == word)
        .ok_or_else(|| Failure::unusable("a job is in no known state; run an audit"))
}

/// Makes a scheduled job ready.
struct Run {
    job: JobId,
}

impl Run {
    /// Finds the job. The error is the answer for a job that cannot be run now.
    fn find(&self, store: &Store<'_>) -> Result<Result<ScheduledRow, RunNow>, Failure> {
        let Some(found) = store.find_scheduled(self.job.as_str())? else {
            return Ok(Err(RunNow::NotScheduled));
        };
        if !found.is_held {
            return Ok(Ok(found));
        }
        let leader = found.leader.and_then(|leader| JobId::new(leader).ok());
        let leader = leader.ok_or_else(|| {
            let words = format!("job {} is held, and follows no job", self.job);
            Failure::unusable(format!("{words}; run an audit"))
        })?;
        Ok(Err(RunNow::Following { leader }))
    }
}

impl Call for Run {
    type Answer = RunNow;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<RunNow>, Failure> {
        Ok(self.find(store)?.err())
    }

    fn run(&self, store: &Store<'_>) -> Result<RunNow, Failure> {
        let found = match self.find(store)? {
            Ok(found) => found,
            Err(answer) => return Ok(answer),
        };
        // Make due jobs ready first, because they come before it (R13). It may be one of
        // them.
        store.promote_due(store.page)?;
        store.run_now(found.job, store.take_turns(1)?)?;
        store.wake_claims();
        if found.is_piece {
            maintenance::after_pieces_ended(store)?;
        }
        Ok(RunNow::Ready)
    }
}

/// Stores the report of a worker.
pub(crate) struct ReportWorker {
    pub(crate) report: WorkerReport,
}

impl Call for ReportWorker {
    type Answer = ();

    fn run(&self, store: &Store<'_>) -> Result<(), Failure> {
        let WorkerReport { worker, slots, .. } = &self.report;
        store.report_worker(worker.as_str(), slots.get())
    }
}

/// Reads one page of the workers that have reported.
struct Workers {
    /// The name of the last worker of the previous page.
    after: String,
    limit: u32,
}

impl Workers {
    fn new(after: Option<&PageCursor>, limit: NonZeroU32) -> Result<Self, Failure> {
        let after = match after {
            None => String::new(),
            Some(cursor) => read_cursor(cursor).ok_or_else(peek::foreign_cursor)?,
        };
        Ok(Self { after, limit: limit.get() })
    }
}

impl Call for Workers {
    type Answer = WorkersPage;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<WorkersPage>, Failure> {
        self.run(store).map(Some)
    }

    /// Workers that died stay in the table until the next `recover`, and so do reports from
    /// before the clock was set back. They count for the size of a page, so that a page
    /// never reads more rows than that.
    fn run(&self, store: &Store<'_>) -> Result<WorkersPage, Failure> {
        let most = self.limit.min(store.page);
        let rows = store.worker_page(&self.after, most)?;
        let last = rows.last().filter(|_| rows.len() == most as usize);
        let next = last.map(|last| write_cursor(&last.worker));
        let listed_until = store.now_ms() + 1..=store.listed_until() + SEEN_LATER_MS;
        let listed = rows.iter().filter(|row| listed_until.contains(&row.until));
        let workers = listed.map(worker_view).collect::<Result<_, _>>()?;
        Ok(WorkersPage { workers, next })
    }
}

fn write_cursor(worker: &str) -> PageCursor {
    PageCursor(Bytes::from(format!("{WORKERS_CURSOR}{worker}")))
}

fn read_cursor(cursor: &PageCursor) -> Option<String> {
    let text = std::str::from_utf8(&cursor.0).ok()?;
    text.strip_prefix(WORKERS_CURSOR).map(str::to_owned)
}

fn worker_view(row: &WorkerRow) -> Result<WorkerView, Failure> {
    let damaged = || {
        let words = format!("the report of worker {:?} is damaged", row.worker);
        Failure::unusable(format!("{words}; it is forgotten a minute after its time"))
    };
    let worker = WorkerId::new(&row.worker).map_err(|_| damaged())?;
    let slots = NonZeroU32::new(row.slots).ok_or_else(damaged)?;
    let since = Timestamp::from_unix_ms(row.since);
    let until = Timestamp::from_unix_ms(row.until);
    Ok(WorkerView::new(worker, slots, since).until(until))
}

#[async_trait]
impl InspectQueue for SqliteQueue {
    async fn job(&self, job: &JobId) -> Result<JobLookup, Error> {
        let call = LookUp { job: job.clone() };
        self.read(call).await.map_err(|it| it.at(Operation::ReadJob))
    }

    async fn run_now(&self, job: &JobId) -> Result<RunNow, Error> {
        let call = Run { job: job.clone() };
        self.db_thread().call(call).await.map_err(|it| it.at(Operation::RunNow))
    }

    async fn workers(
        &self,
        after: Option<&PageCursor>,
        limit: NonZeroU32,
    ) -> Result<WorkersPage, Error> {
        let call = Workers::new(after, limit);
        let call = call.map_err(|it| it.at(Operation::ReadWorkers))?;
        self.read(call).await.map_err(|it| it.at(Operation::ReadWorkers))
    }
}
