//! The calls of an actor that find jobs and workers (R31 to R33).

use std::num::NonZeroU32;

use relq_core::{
    JobId, WorkerId,
    operator::{
        InspectQueue, JobLookup, JobRecord, JobState, JobView, PeekRequest, RunNow,
        WorkerReport, WorkerView,
    },
};

use super::actor::Actor;

impl Actor {
    /// Returns the queue's calls that find jobs. Panics if the backend has none.
    pub(crate) fn inspector(&self) -> &dyn InspectQueue {
        self.inspect_queue().expect("the backend finds jobs")
    }

    pub(crate) async fn look_up(&self, job: &JobId) -> JobLookup {
        self.inspector().job(job).await.expect("the look-up is answered")
    }

    /// Returns the record of a job, which the look-up must find.
    pub(crate) async fn record(&self, job: &JobId) -> JobRecord {
        match self.look_up(job).await {
            JobLookup::Stored(found) => *found,
            other => panic!("R31: the look-up of {job} finds {other:?}"),
        }
    }

    pub(crate) async fn run_now(&self, job: &JobId) -> RunNow {
        self.inspector().run_now(job).await.expect("the call is answered")
    }

    /// Lists all jobs in a state, newest first, by pages of at most `limit` jobs.
    pub(crate) async fn list_newest(
        &self,
        state: JobState,
        limit: u32,
    ) -> Vec<JobView> {
        let limit = NonZeroU32::new(limit).expect("not zero");
        self.list_as(PeekRequest::new(state, limit).newest_first()).await
    }

    /// Reports that a worker with this many slots runs.
    pub(crate) async fn report_running(&self, worker: &WorkerId, slots: u32) {
        let slots = NonZeroU32::new(slots).expect("a worker has a slot");
        let report = WorkerReport::new(worker.clone(), slots);
        self.report_worker(&report).await.expect("the report is answered");
    }

    /// Lists all workers, by pages of at most `limit`, ordered by their ids.
    pub(crate) async fn workers_by(&self, limit: u32) -> Vec<WorkerView> {
        let limit = NonZeroU32::new(limit).expect("not zero");
        let (mut workers, mut after) = (Vec::new(), None);
        loop {
            let page = self.inspector().workers(after.as_ref(), limit).await;
            let page = page.expect("the listing is answered");
            workers.extend(page.workers);
            after = page.next;
            if after.is_none() {
                break;
            }
        }
        workers.sort_by(|a, b| a.worker.cmp(&b.worker));
        // A worker that reports meanwhile may be on several pages (R33).
        workers.dedup_by(|a, b| a.worker == b.worker);
        workers
    }

    /// The worker that is listed. Panics if there is not exactly one.
    pub(crate) async fn the_worker(&self) -> WorkerView {
        let mut workers = self.workers_by(10).await;
        assert_eq!(
            workers.len(),
            1,
            "R33: one worker is listed, of these: {workers:?}"
        );
        workers.remove(0)
    }
}
