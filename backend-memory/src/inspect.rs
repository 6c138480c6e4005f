//! The calls that find a job, run it now, and list the workers (R31 to R33).

use std::{
    num::NonZeroU32,
    ops::Bound::{Excluded, Unbounded},
};

use async_trait::async_trait;
use relq_core::{
    Bytes, Error, JobId, WorkerId,
    environment::Timestamp,
    error::Operation,
    operator::{
        InspectQueue, JobLookup, JobRecord, PageCursor, RunNow, WORKER_FORGOTTEN_AFTER,
        WorkerReport, WorkerView, WorkersPage,
    },
};

use crate::{
    job::{Job, StoredState},
    operator::view,
    queue::{MemoryQueue, foreign_cursor},
    state::State,
};

#[async_trait]
impl InspectQueue for MemoryQueue {
    async fn job(&self, job: &JobId) -> Result<JobLookup, Error> {
        Ok(self.step(|state, now| state.look_up(job, now)))
    }

    async fn run_now(&self, job: &JobId) -> Result<RunNow, Error> {
        Ok(self.step(|state, now| state.run_now(job, now)))
    }

    async fn workers(
        &self,
        after: Option<&PageCursor>,
        limit: NonZeroU32,
    ) -> Result<WorkersPage, Error> {
        let after = match after {
            None => None,
            Some(cursor) => Some(
                read_cursor(cursor)
                    .ok_or_else(|| foreign_cursor(Operation::ReadWorkers))?,
            ),
        };
        Ok(self.step(|state, now| state.workers_page(after, limit, now)))
    }
}

fn read_cursor(cursor: &PageCursor) -> Option<WorkerId> {
    WorkerId::new(std::str::from_utf8(&cursor.0).ok()?).ok()
}

impl State {
    fn look_up(&self, id: &JobId, now: Timestamp) -> JobLookup {
        if let Some(job) = self.jobs.values().find(|job| job.id == *id) {
            let held = self.jobs.values().filter(|job| job.leader() == Some(id));
            let followers = held.map(|job| job.id.clone()).collect();
            return JobLookup::Stored(Box::new(JobRecord::new(view(job), followers)));
        }
        match self.ended_ids.get(id).filter(|ended| ended.until > now) {
            Some(ended) => {
                JobLookup::Ended { was_done: ended.was_done, until: ended.until }
            }
            None => JobLookup::Unknown,
        }
    }

    fn run_now(&mut self, id: &JobId, now: Timestamp) -> RunNow {
        let found = self.jobs.iter().find(|(_, job)| job.id == *id);
        let Some((position, job)) = found else { return RunNow::NotScheduled };
        match &job.state {
            StoredState::Held { leader } => {
                RunNow::Following { leader: leader.clone() }
            }
            StoredState::Scheduled { .. } => {
                let position = *position;
                let job = self.jobs.remove(&position).expect("it was found there");
                let state = StoredState::Ready;
                self.enqueue(Job { state, ready_at: now, ..job });
                RunNow::Ready
            }
            _ => RunNow::NotScheduled,
        }
    }

    /// Stores the report of a worker. A worker that is still listed keeps the time of its
    /// first report.
    pub(crate) fn report_worker(&mut self, report: &WorkerReport, now: Timestamp) {
        let known =
            self.workers.get(&report.worker).filter(|known| is_listed(known, now));
        let since = known.map_or(now, |one| one.since);
        let view = WorkerView::new(report.worker.clone(), report.slots, since)
            .until(now.plus(WORKER_FORGOTTEN_AFTER));
        self.workers.insert(report.worker.clone(), view);
    }

    fn workers_page(
        &self,
        after: Option<WorkerId>,
        limit: NonZeroU32,
        now: Timestamp,
    ) -> WorkersPage {
        let after = after.map_or(Unbounded, Excluded);
        let listed = self.workers.range((after, Unbounded)).map(|(_, worker)| worker);
        let mut listed = listed.filter(|worker| is_listed(worker, now));
        let workers: Vec<_> =
            listed.by_ref().take(limit.get() as usize).cloned().collect();
        let has_more = listed.next().is_some();
        let last = workers.last().filter(|_| has_more);
        let next = last.map(|last| {
            PageCursor(Bytes::copy_from_slice(last.worker.as_str().as_bytes()))
        });
        WorkersPage { workers, next }
    }
}

/// Whether a worker has reported within the last minute. A report of a later time is from
/// before the clock was set back.
pub(crate) fn is_listed(worker: &WorkerView, now: Timestamp) -> bool {
    worker.until > now && worker.until <= now.plus(WORKER_FORGOTTEN_AFTER)
}
