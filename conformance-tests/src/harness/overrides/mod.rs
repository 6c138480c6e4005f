//! Queues with one deliberate fault, to check that the suite detects it.
//!
//! A suite is only as good as the faults that it detects. The author of a backend can
//! break it on purpose and name the case that must fail, as this suite's own mutants
//! do:
//!
//! ```
//! use relq_conformance::{async_trait, overrides::{Right, Override}};
//! use relq_core::{Error, WorkerId, outcome::Released};
//!
//! struct LeavesNothing;
//!
//! #[async_trait]
//! impl Override for LeavesNothing {
//!     async fn release_worker(&self, _: &Right, _: &WorkerId) -> Result<Released, Error> {
//!         Ok(Released { jobs: 0 })
//!     }
//! }
//! ```
//!
//! [`OverriddenQueue::new`] makes a queue of it, which a subject can return, and
//! [`judge_case`](crate::judge_case) returns a case's result for that subject.

mod batches;
mod inspecting;
mod operator;
mod restoring;
mod results;
mod schedules;
mod worker;

use std::{fmt, num::NonZeroU32, ops::Deref, sync::Arc, time::Duration};

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Error, JobId, NewJob, PushToken, Queue, Receipt,
    Settlement, Stats, WorkerId,
    batch::{Added, BatchId, BatchStatus, Created, NewBatch},
    capabilities::{Capabilities, Capability},
    environment::Environment,
    operator::{
        Cancelled, JobLookup, JobView, Page, PageCursor, PeekRequest, Redriven, RunNow,
        Selection, WorkerReport, WorkersPage,
    },
    outcome::{Extended, Pushed, Recovered, Released, Settled, SettledAndClaimed},
    results::{JobResult, Reported},
    schedule::{ScheduleName, ScheduleStored, Schedules, Tick, Ticked},
};

/// The calls of a queue that a mutant replaces. A call whose method is not implemented
/// goes to the healthy queue.
#[async_trait]
pub trait Override: Send + Sync {
    /// Replaces [`capabilities`](relq_core::ReliableQueue::capabilities). The queue has
    /// none of the calls of an option that is missing here, such as
    /// [`batch_queue`](relq_core::ReliableQueue::batch_queue).
    fn capabilities<'a>(&'a self, right: &'a Right) -> &'a Capabilities {
        right.capabilities()
    }

    /// Replaces [`push`](relq_core::ReliableQueue::push).
    async fn push(
        &self,
        right: &Right,
        jobs: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        right.push(jobs, token).await
    }

    /// Replaces [`claim`](relq_core::ReliableQueue::claim).
    async fn claim(
        &self,
        right: &Right,
        ask: &ClaimRequest,
    ) -> Result<Vec<Delivery>, Error> {
        right.claim(ask).await
    }

    /// Replaces [`wait_for_jobs`](relq_core::ReliableQueue::wait_for_jobs).
    async fn wait_for_jobs(&self, right: &Right, limit: Duration) -> Result<(), Error> {
        right.wait_for_jobs(limit).await
    }

    /// Replaces [`settle`](relq_core::ReliableQueue::settle).
    async fn settle(
        &self,
        right: &Right,
        done: &[Settlement],
    ) -> Result<Vec<Settled>, Error> {
        right.settle(done).await
    }

    /// Replaces [`extend`](relq_core::ReliableQueue::extend).
    async fn extend(
        &self,
        right: &Right,
        worker: &WorkerId,
        held: &[Receipt],
        lease: Duration,
    ) -> Result<Vec<Extended>, Error> {
        right.extend(worker, held, lease).await
    }

    /// Replaces [`recover`](relq_core::ReliableQueue::recover).
    async fn recover(
        &self,
        right: &Right,
        page: NonZeroU32,
    ) -> Result<Recovered, Error> {
        right.recover(page).await
    }

    /// Replaces [`settle_and_claim`](relq_core::ReliableQueue::settle_and_claim). By
    /// default it calls `settle` and then `claim` of this trait.
    async fn settle_and_claim(
        &self,
        right: &Right,
        done: &[Settlement],
        ask: &ClaimRequest,
    ) -> SettledAndClaimed {
        let settled = self.settle(right, done).await;
        let at_once = ask.clone().wait(Duration::ZERO);
        SettledAndClaimed { settled, claimed: self.claim(right, &at_once).await }
    }

    /// Replaces [`release_worker`](relq_core::ReliableQueue::release_worker).
    async fn release_worker(
        &self,
        right: &Right,
        worker: &WorkerId,
    ) -> Result<Released, Error> {
        right.release_worker(worker).await
    }

    /// Replaces [`report_worker`](relq_core::ReliableQueue::report_worker).
    async fn report_worker(
        &self,
        right: &Right,
        report: &WorkerReport,
    ) -> Result<(), Error> {
        right.report_worker(report).await
    }

    /// Replaces [`job`](relq_core::operator::InspectQueue::job).
    async fn job(&self, right: &Right, job: &JobId) -> Result<JobLookup, Error> {
        right.inspector().job(job).await
    }

    /// Replaces [`run_now`](relq_core::operator::InspectQueue::run_now).
    async fn run_now(&self, right: &Right, job: &JobId) -> Result<RunNow, Error> {
        right.inspector().run_now(job).await
    }

    /// Replaces [`workers`](relq_core::operator::InspectQueue::workers).
    async fn workers(
        &self,
        right: &Right,
        after: Option<&PageCursor>,
        limit: NonZeroU32,
    ) -> Result<WorkersPage, Error> {
        right.inspector().workers(after, limit).await
    }

    /// Replaces [`restore`](relq_core::operator::RestoreQueue::restore).
    async fn restore(
        &self,
        right: &Right,
        jobs: &[JobView],
    ) -> Result<Vec<Pushed>, Error> {
        right.restorer().restore(jobs).await
    }

    /// Replaces [`create`](relq_core::batch::BatchQueue::create).
    async fn create(&self, right: &Right, batch: &NewBatch) -> Result<Created, Error> {
        right.batches().create(batch).await
    }

    /// Replaces [`seal`](relq_core::batch::BatchQueue::seal).
    async fn seal(
        &self,
        right: &Right,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        right.batches().seal(batch).await
    }

    /// Replaces [`add`](relq_core::batch::BatchQueue::add).
    async fn add(
        &self,
        right: &Right,
        batch: &BatchId,
        pieces: &[NewJob],
        token: Option<&PushToken>,
    ) -> Result<Added, Error> {
        right.batches().add(batch, pieces, token).await
    }

    /// Replaces [`batch`](relq_core::batch::BatchQueue::batch).
    async fn batch(
        &self,
        right: &Right,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        right.batches().batch(batch).await
    }

    /// Replaces [`cancel_batch`](relq_core::batch::BatchQueue::cancel_batch).
    async fn cancel_batch(
        &self,
        right: &Right,
        batch: &BatchId,
    ) -> Result<Option<BatchStatus>, Error> {
        right.batches().cancel_batch(batch).await
    }

    /// Replaces [`wait_batch`](relq_core::batch::BatchQueue::wait_batch).
    async fn wait_batch(
        &self,
        right: &Right,
        batch: &BatchId,
        timeout: Duration,
    ) -> Result<Option<BatchStatus>, Error> {
        right.batches().wait_batch(batch, timeout).await
    }

    /// Replaces [`put_schedule`](relq_core::schedule::ScheduleQueue::put_schedule).
    async fn put_schedule(
        &self,
        right: &Right,
        name: &ScheduleName,
        definition: &[u8],
    ) -> Result<ScheduleStored, Error> {
        right.scheduler().put_schedule(name, definition).await
    }

    /// Replaces [`schedules`](relq_core::schedule::ScheduleQueue::schedules).
    async fn schedules(&self, right: &Right) -> Result<Schedules, Error> {
        right.scheduler().schedules().await
    }

    /// Replaces [`push_tick`](relq_core::schedule::ScheduleQueue::push_tick).
    async fn push_tick(
        &self,
        right: &Right,
        tick: &Tick,
        job: NewJob,
    ) -> Result<Ticked, Error> {
        right.scheduler().push_tick(tick, job).await
    }

    /// Replaces [`report_progress`](relq_core::results::ResultQueue::report_progress).
    async fn report_progress(
        &self,
        right: &Right,
        receipt: &Receipt,
        progress: &[u8],
    ) -> Result<Reported, Error> {
        right.results().report_progress(receipt, progress).await
    }

    /// Replaces [`read_results`](relq_core::results::ResultQueue::read_results).
    async fn read_results(
        &self,
        right: &Right,
        jobs: &[JobId],
    ) -> Result<Vec<Option<JobResult>>, Error> {
        right.results().read_results(jobs).await
    }

    /// Replaces [`wait_result`](relq_core::results::ResultQueue::wait_result).
    async fn wait_result(
        &self,
        right: &Right,
        job: &JobId,
        timeout: Duration,
    ) -> Result<Option<JobResult>, Error> {
        right.results().wait_result(job, timeout).await
    }

    /// Replaces [`stats`](relq_core::Operator::stats).
    async fn stats(&self, right: &Right) -> Result<Stats, Error> {
        right.stats().await
    }

    /// Replaces [`peek`](relq_core::Operator::peek).
    async fn peek(&self, right: &Right, ask: &PeekRequest) -> Result<Page, Error> {
        right.peek(ask).await
    }

    /// Replaces [`redrive`](relq_core::Operator::redrive).
    async fn redrive(
        &self,
        right: &Right,
        which: &Selection,
    ) -> Result<Redriven, Error> {
        right.redrive(which).await
    }

    /// Replaces [`purge_dead`](relq_core::Operator::purge_dead).
    async fn purge_dead(&self, right: &Right, which: &Selection) -> Result<u64, Error> {
        right.purge_dead(which).await
    }

    /// Replaces [`purge`](relq_core::Operator::purge).
    async fn purge(&self, right: &Right) -> Result<u64, Error> {
        right.purge().await
    }

    /// Replaces [`cancel`](relq_core::Operator::cancel).
    async fn cancel(&self, right: &Right, job: &JobId) -> Result<Cancelled, Error> {
        right.cancel(job).await
    }

    /// Replaces [`pause`](relq_core::Operator::pause).
    async fn pause(&self, right: &Right) -> Result<(), Error> {
        right.pause().await
    }

    /// Replaces [`resume`](relq_core::Operator::resume).
    async fn resume(&self, right: &Right) -> Result<(), Error> {
        right.resume().await
    }
}

/// A healthy queue, and the clock and randomness that its client uses.
#[derive(Debug)]
pub struct Right {
    /// The healthy queue, to which an override may pass a call on.
    pub queue: Arc<dyn Queue>,
    /// The environment that the queue was opened with.
    pub environment: Environment,
}

impl Deref for Right {
    type Target = dyn Queue;

    fn deref(&self) -> &Self::Target {
        &*self.queue
    }
}

/// A healthy queue with some of its calls replaced.
pub struct OverriddenQueue {
    right: Right,
    overrides: Arc<dyn Override>,
}

impl OverriddenQueue {
    /// Creates a queue that makes each call through `overrides`. A call that
    /// `overrides` does not implement goes to the queue `right`.
    pub fn new(right: Right, overrides: Arc<dyn Override>) -> Self {
        Self { right, overrides }
    }

    /// The healthy queue, if this queue declares the option.
    fn right_with(&self, option: Capability) -> Option<&Right> {
        let can = self.overrides.capabilities(&self.right);
        can.supports(option).then_some(&self.right)
    }
}

impl fmt::Display for OverriddenQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, overridden", self.right.queue)
    }
}

impl fmt::Debug for OverriddenQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "OverriddenQueue({self})")
    }
}
