//! A queue that notes each of its calls in a [`CallLog`].

use std::{fmt, num::NonZeroU32, sync::Arc, time::Duration};

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Error, JobId, NewJob, Operator, PushToken, Receipt,
    ReliableQueue, Settlement, Stats, WorkerId,
    batch::{Added, BatchId, BatchQueue, BatchStatus, Change, Created, NewBatch},
    capabilities::Capabilities,
    operator::{
        Audit, Cancelled, InspectQueue, JobLookup, JobView, Page, PageCursor,
        PeekOrder, PeekRequest, Redriven, RestoreQueue, RunNow, Selection,
        WorkerReport, WorkersPage,
    },
    outcome::{Extended, Pushed, Recovered, Released, Settled, SettledAndClaimed},
    results::{JobResult, Reported, ResultQueue},
    schedule::{ScheduleName, ScheduleQueue, ScheduleStored, Schedules, Tick, Ticked},
};

use super::{
    call_log::CallLog,
    call_words::{NAMED, claimed, pushed, selected, settled, some_of},
};

/// A queue that notes each of its calls, with the name of the actor that makes it.
#[derive(Debug)]
pub(crate) struct LoggedQueue<Q: ?Sized> {
    queue: Arc<Q>,
    actor: String,
    calls: CallLog,
}

impl<Q: ?Sized> LoggedQueue<Q> {
    pub(crate) fn new(queue: Arc<Q>, actor: &str, calls: CallLog) -> Self {
        Self { queue, actor: actor.to_owned(), calls }
    }

    async fn note<T>(&self, what: String, call: impl Future<Output = T>) -> T {
        self.calls.note(format!("{} {what}", self.actor), call).await
    }
}

#[async_trait]
#[deny(clippy::missing_trait_methods)]
impl<Q: ReliableQueue + ?Sized> ReliableQueue for LoggedQueue<Q> {
    fn capabilities(&self) -> &Capabilities {
        self.queue.capabilities()
    }

    async fn push(
        &self,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        self.note(format!("pushes {}", pushed(jobs)), self.queue.push(jobs, token))
            .await
    }

    fn part_of_job(&self, job: &NewJob) -> Result<Option<usize>, Error> {
        self.queue.part_of_job(job)
    }

    async fn claim(&self, ask: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        self.note(claimed(ask), self.queue.claim(ask)).await
    }

    async fn wait_for_jobs(&self, limit: Duration) -> Result<(), Error> {
        let what = format!("waits for jobs for up to {limit:?}");
        self.note(what, self.queue.wait_for_jobs(limit)).await
    }

    async fn settle(&self, done: &[Settlement]) -> Result<Vec<Settled>, Error> {
        self.note(settled(done), self.queue.settle(done)).await
    }

    async fn settle_and_claim(
        &self,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        let what = format!("{} and {}", settled(done), claimed(ask));
        self.note(what, self.queue.settle_and_claim(done, ask)).await
    }

    async fn extend(
        &self,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        let jobs = some_of(held.iter().map(|one| one.job().to_string()));
        let what = format!("extends the leases of {jobs} to {lease:?}, as {worker}");
        self.note(what, self.queue.extend(worker, held, lease)).await
    }

    async fn release_worker(&self, worker: &WorkerId) -> Result<Released, Error> {
        let what = format!("releases the jobs of {worker}");
        self.note(what, self.queue.release_worker(worker)).await
    }

    async fn report_worker(&self, report: &WorkerReport) -> Result<(), Error> {
        let what =
            format!("reports worker {} of {} slots", report.worker, report.slots);
        self.note(what, self.queue.report_worker(report)).await
    }

    async fn recover(&self, page: NonZeroU32) -> Result<Recovered, Error> {
        let what = format!("recovers up to {page} jobs");
        self.note(what, self.queue.recover(page)).await
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        let what = "opens another queue".to_owned();
        let other = self.note(what, self.queue.open_another()).await?;
        let actor = format!("{}, on another queue,", self.actor);
        Ok(Arc::new(LoggedQueue::new(other, &actor, self.calls.clone())))
    }

    fn batch_queue(&self) -> Option<&dyn BatchQueue> {
        self.queue.batch_queue().map(|_| self as &dyn BatchQueue)
    }

    fn schedule_queue(&self) -> Option<&dyn ScheduleQueue> {
        self.queue.schedule_queue().map(|_| self as &dyn ScheduleQueue)
    }

    fn result_queue(&self) -> Option<&dyn ResultQueue> {
        self.queue.result_queue().map(|_| self as &dyn ResultQueue)
    }
}

#[async_trait]
impl<Q: Operator + ?Sized> Operator for LoggedQueue<Q> {
    async fn stats(&self) -> Result<Stats, Error> {
        self.note("reads the stats".to_owned(), self.queue.stats()).await
    }

    async fn peek(&self, ask: &PeekRequest) -> Result<Page, Error> {
        let order = match ask.order {
            PeekOrder::AsServed => "",
            PeekOrder::NewestFirst => ", newest first",
        };
        let what = format!("lists {} jobs{order}", ask.state.as_str());
        self.note(what, self.queue.peek(ask)).await
    }

    async fn redrive(&self, which: &Selection) -> Result<Redriven, Error> {
        let what = format!("redrives {}", selected(which));
        self.note(what, self.queue.redrive(which)).await
    }

    async fn purge_dead(&self, which: &Selection) -> Result<u64, Error> {
        let what = format!("purges {}", selected(which));
        self.note(what, self.queue.purge_dead(which)).await
    }

    async fn purge(&self) -> Result<u64, Error> {
        self.note("purges the queue".to_owned(), self.queue.purge()).await
    }

    async fn cancel(&self, job: &JobId) -> Result<Cancelled, Error> {
        self.note(format!("cancels job {job}"), self.queue.cancel(job)).await
    }

    async fn pause(&self) -> Result<(), Error> {
        self.note("pauses the queue".to_owned(), self.queue.pause()).await
    }

    async fn resume(&self) -> Result<(), Error> {
        self.note("resumes the queue".to_owned(), self.queue.resume()).await
    }

    async fn audit(&self) -> Result<Audit, Error> {
        self.note("audits the queue".to_owned(), self.queue.audit()).await
    }

    fn inspect_queue(&self) -> Option<&dyn InspectQueue> {
        self.queue.inspect_queue().map(|_| self as &dyn InspectQueue)
    }

    fn restore_queue(&self) -> Option<&dyn RestoreQueue> {
        self.queue.restore_queue().map(|_| self as &dyn RestoreQueue)
    }
}

#[async_trait]
impl<Q: Operator + ?Sized> RestoreQueue for LoggedQueue<Q> {
    async fn restore(&self, jobs: &[JobView]) -> Result<Vec<Pushed>, Error> {
        let restorer = self.queue.restore_queue();
        let restorer = restorer.expect("the queue restores jobs, since it was asked");
        let named = jobs.iter().take(NAMED).filter_map(|job| job.id.as_ref());
        let named: Vec<_> = named.map(JobId::as_str).collect();
        let what = format!("restores {} jobs: {}", jobs.len(), named.join(", "));
        self.note(what, restorer.restore(jobs)).await
    }
}

impl<Q: Operator + ?Sized> LoggedQueue<Q> {
    fn inspector(&self) -> &dyn InspectQueue {
        let inspector = self.queue.inspect_queue();
        inspector.expect("the queue finds jobs, since it was asked")
    }
}

#[async_trait]
impl<Q: Operator + ?Sized> InspectQueue for LoggedQueue<Q> {
    async fn job(&self, job: &JobId) -> Result<JobLookup, Error> {
        self.note(format!("looks for job {job}"), self.inspector().job(job)).await
    }

    async fn run_now(&self, job: &JobId) -> Result<RunNow, Error> {
        self.note(format!("runs job {job} now"), self.inspector().run_now(job)).await
    }

    async fn workers(
        &self,
        after: Option<&PageCursor>,
        limit: NonZeroU32,
    ) -> Result<WorkersPage, Error> {
        let what = format!("lists up to {limit} workers");
        self.note(what, self.inspector().workers(after, limit)).await
    }
}

impl<Q: ReliableQueue + ?Sized> LoggedQueue<Q> {
    fn batches(&self) -> &dyn BatchQueue {
        self.queue.batch_queue().expect("the queue has batches, since it was asked")
    }
}

#[async_trait]
impl<Q: ReliableQueue + ?Sized> BatchQueue for LoggedQueue<Q> {
    async fn create(&self, batch: &NewBatch) -> Result<Created, Error> {
        let what = format!("creates batch {}", batch.id);
        self.note(what, self.batches().create(batch)).await
    }

    async fn add(
        &self,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error> {
        let what = format!("adds {} to batch {batch}", pushed(pieces));
        self.note(what, self.batches().add(batch, pieces, token)).await
    }

    async fn seal(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        self.note(format!("seals batch {batch}"), self.batches().seal(batch)).await
    }

    async fn batch(&self, batch: &BatchId) -> Result<Option<BatchStatus>, Error> {
        let what = format!("reads batch {batch}");
        self.note(what, self.batches().batch(batch)).await
    }

    async fn list_batches(
        &self,
        after: Option<&BatchId>,
        limit: NonZeroU32,
    ) -> Result<Vec<BatchStatus>, Error> {
        let what = format!("lists up to {limit} batches");
        self.note(what, self.batches().list_batches(after, limit)).await
    }

    async fn cancel_batch(
        &self,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        let what = format!("cancels batch {batch}");
        self.note(what, self.batches().cancel_batch(batch)).await
    }

    async fn alter(
        &self,
        batch: &BatchId,
        change: &Change,
    ) -> Result<Option<BatchStatus>, Error> {
        let what = format!("alters batch {batch}");
        self.note(what, self.batches().alter(batch, change)).await
    }

    async fn wait_batch(
        &self,
        batch: &BatchId,
        timeout: Duration,
    ) -> Result<Option<BatchStatus>, Error> {
        let what = format!("waits up to {timeout:?} for batch {batch}");
        self.note(what, self.batches().wait_batch(batch, timeout)).await
    }
}

impl<Q: ReliableQueue + ?Sized> LoggedQueue<Q> {
    fn scheduler(&self) -> &dyn ScheduleQueue {
        let scheduler = self.queue.schedule_queue();
        scheduler.expect("the queue has schedules, since it was asked")
    }
}

#[async_trait]
impl<Q: ReliableQueue + ?Sized> ScheduleQueue for LoggedQueue<Q> {
    async fn put_schedule(
        &self,
        name: &ScheduleName,
        definition: &[u8],
    ) -> Result<ScheduleStored, Error> {
        let what = format!("stores schedule {name} of {} bytes", definition.len());
        self.note(what, self.scheduler().put_schedule(name, definition)).await
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool, Error> {
        let what = format!("removes schedule {name}");
        self.note(what, self.scheduler().remove_schedule(name)).await
    }

    async fn schedules(&self) -> Result<Schedules, Error> {
        self.note("lists the schedules".to_owned(), self.scheduler().schedules()).await
    }

    async fn push_tick(&self, tick: &Tick, job: NewJob) -> Result<Ticked, Error> {
        let jobs = pushed(std::slice::from_ref(&job));
        let what = format!("pushes {jobs} at {:?} of schedule {}", tick.at, tick.name);
        self.note(what, self.scheduler().push_tick(tick, job)).await
    }
}

impl<Q: ReliableQueue + ?Sized> LoggedQueue<Q> {
    fn results(&self) -> &dyn ResultQueue {
        let results = self.queue.result_queue();
        results.expect("the queue keeps results, since it was asked")
    }
}

#[async_trait]
impl<Q: ReliableQueue + ?Sized> ResultQueue for LoggedQueue<Q> {
    async fn report_progress(
        &self,
        receipt: &Receipt,
        progress: &[u8],
    ) -> Result<Reported, Error> {
        let what = format!("reports {} bytes of job {}", progress.len(), receipt.job());
        self.note(what, self.results().report_progress(receipt, progress)).await
    }

    async fn read_results(
        &self,
        jobs: &[JobId],
    ) -> Result<Vec<Option<JobResult>>, Error> {
        let names = some_of(jobs.iter().map(ToString::to_string));
        let what = format!("reads the results of {names}");
        self.note(what, self.results().read_results(jobs)).await
    }

    async fn wait_result(
        &self,
        job: &JobId,
        timeout: Duration,
    ) -> Result<Option<JobResult>, Error> {
        let what = format!("waits up to {timeout:?} for the result of {job}");
        self.note(what, self.results().wait_result(job, timeout)).await
    }
}

impl<Q: fmt::Display + ?Sized> fmt::Display for LoggedQueue<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.queue.fmt(f)
    }
}
