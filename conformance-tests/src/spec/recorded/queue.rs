//! A queue that answers each call with the next recorded reply.

use std::{
    collections::VecDeque,
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Error, JobId, NewJob, Operator, PushToken, Receipt,
    ReliableQueue, Settlement, Stats, WorkerId,
    batch::{Added, BatchId, BatchQueue, BatchStatus, Change, Created, NewBatch},
    capabilities::{Capabilities, Capability},
    error::{self, Effect, ErrorContext},
    operator::{
        Audit, Cancelled, InspectQueue, JobLookup, JobView, Page, PageCursor,
        PeekRequest, Redriven, RestoreQueue, RunNow, Selection, WorkerReport,
        WorkersPage,
    },
    outcome::{Extended, Pushed, Recovered, Released, Settled},
    results::{JobResult, Reported, ResultQueue},
    schedule::{ScheduleName, ScheduleQueue, ScheduleStored, Schedules, Tick, Ticked},
};

use super::{Reply, Returned};
use crate::spec::reference::CheckResult;

/// A queue whose calls return the recorded replies, in order.
pub(super) struct Replies {
    pub(super) can: Capabilities,
    left: Mutex<VecDeque<Reply>>,
    /// The statuses of batches that were read while no call was running.
    statuses: Mutex<Vec<(BatchId, Returned<Option<BatchStatus>>)>>,
}

impl Replies {
    /// A record without replies, of a queue with these capabilities.
    pub(super) fn of(can: &Capabilities) -> Self {
        Self { can: can.clone(), left: Mutex::default(), statuses: Mutex::default() }
    }

    pub(super) fn put(&self, replies: impl IntoIterator<Item = Reply>) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).extend(replies);
    }

    fn next(&self) -> Option<Reply> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    pub(super) fn statuses(
        &self,
    ) -> MutexGuard<'_, Vec<(BatchId, Returned<Option<BatchStatus>>)>> {
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn is_empty(&self) -> CheckResult {
        match self.next() {
            None => Ok(()),
            Some(reply) => Err(format!("the reference makes no call for {reply:?}")),
        }
    }
}

impl fmt::Debug for Replies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Replies")
    }
}

impl fmt::Display for Replies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("recorded replies")
    }
}

const RECORDED: ErrorContext =
    ErrorContext { backend: "recorded", operation: error::Operation::Connect };

/// An error with the effect and the text of the recorded one.
#[expect(clippy::needless_pass_by_value, reason = "it maps errors")]
fn error(recorded: Arc<Error>) -> Error {
    let (at, source) = (RECORDED, recorded.full_message().into());
    if let Error::CannotFollow { leader, why, .. } = &*recorded {
        return Error::CannotFollow { at, leader: leader.clone(), why: *why };
    }
    match recorded.effect() {
        Effect::No => Error::Unavailable { at, source },
        Effect::Maybe => Error::Interrupted { at, source },
        Effect::Yes => Error::Unreadable { at, source },
    }
}

/// The error of a call whose reply was not recorded.
fn not_recorded(text: String) -> Error {
    Error::Unreadable { at: RECORDED, source: text.into() }
}

/// Returns the next recorded reply, which must be of that kind.
macro_rules! recorded {
    ($self:ident, $kind:ident) => {
        match $self.next() {
            Some(Reply::$kind(answer)) => answer.map_err(error),
            other => {
                let kind = stringify!($kind);
                Err(not_recorded(format!("the record has no {kind}, but {other:?}")))
            }
        }
    };
}

#[async_trait]
impl ReliableQueue for Replies {
    fn capabilities(&self) -> &Capabilities {
        &self.can
    }

    async fn push(
        &self,
        _: &[NewJob],
        _: Option<&PushToken>,
    ) -> Result<Vec<Pushed>, Error> {
        recorded!(self, Pushed)
    }

    async fn claim(&self, _: &ClaimRequest) -> Result<Vec<Delivery>, Error> {
        recorded!(self, Claimed)
    }

    async fn settle(&self, _: &[Settlement]) -> Result<Vec<Settled>, Error> {
        recorded!(self, Settled)
    }

    async fn extend(
        &self,
        _: &WorkerId,
        _: &[Receipt],
        _: Duration,
    ) -> Result<Vec<Extended>, Error> {
        recorded!(self, Extended)
    }

    async fn release_worker(&self, _: &WorkerId) -> Result<Released, Error> {
        recorded!(self, Released)
    }

    async fn report_worker(&self, _: &WorkerReport) -> Result<(), Error> {
        recorded!(self, WorkerReported)
    }

    async fn recover(&self, _: NonZeroU32) -> Result<Recovered, Error> {
        recorded!(self, Recovered)
    }

    fn batch_queue(&self) -> Option<&dyn BatchQueue> {
        let has_batches = self.can.supports(Capability::Batches);
        has_batches.then_some(self as &dyn BatchQueue)
    }

    fn schedule_queue(&self) -> Option<&dyn ScheduleQueue> {
        let has_schedules = self.can.supports(Capability::Schedules);
        has_schedules.then_some(self as &dyn ScheduleQueue)
    }

    fn result_queue(&self) -> Option<&dyn ResultQueue> {
        let has_results = self.can.supports(Capability::Results);
        has_results.then_some(self as &dyn ResultQueue)
    }

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        Err(not_recorded("a record is not opened twice".to_owned()))
    }
}

#[async_trait]
impl BatchQueue for Replies {
    async fn create(&self, _: &NewBatch) -> Result<Created, Error> {
        recorded!(self, Created)
    }

    async fn add(
        &self,
        _: &BatchId,
        _: &[NewJob],
        _: Option<&PushToken>,
    ) -> Result<Added, Error> {
        recorded!(self, Added)
    }

    async fn seal(&self, _: &BatchId) -> Result<Option<BatchStatus>, Error> {
        recorded!(self, Status)
    }

    async fn batch(&self, id: &BatchId) -> Result<Option<BatchStatus>, Error> {
        let read = self.statuses().iter().find(|(of, _)| of == id).cloned();
        match read {
            Some((_, status)) => status.map_err(error),
            None => recorded!(self, Status),
        }
    }

    async fn list_batches(
        &self,
        _: Option<&BatchId>,
        _: NonZeroU32,
    ) -> Result<Vec<BatchStatus>, Error> {
        recorded!(self, Listed)
    }

    async fn cancel_batch(&self, _: &BatchId) -> Result<Option<BatchStatus>, Error> {
        recorded!(self, Status)
    }

    async fn alter(
        &self,
        _: &BatchId,
        _: &Change,
    ) -> Result<Option<BatchStatus>, Error> {
        recorded!(self, Status)
    }

    async fn wait_batch(
        &self,
        _: &BatchId,
        _: Duration,
    ) -> Result<Option<BatchStatus>, Error> {
        recorded!(self, Status)
    }
}

#[async_trait]
impl ScheduleQueue for Replies {
    async fn put_schedule(
        &self,
        _: &ScheduleName,
        _: &[u8],
    ) -> Result<ScheduleStored, Error> {
        recorded!(self, ScheduleStored)
    }

    async fn remove_schedule(&self, _: &ScheduleName) -> Result<bool, Error> {
        recorded!(self, ScheduleRemoved)
    }

    async fn schedules(&self) -> Result<Schedules, Error> {
        recorded!(self, Schedules)
    }

    async fn push_tick(&self, _: &Tick, _: NewJob) -> Result<Ticked, Error> {
        recorded!(self, Ticked)
    }
}

#[async_trait]
impl ResultQueue for Replies {
    async fn report_progress(&self, _: &Receipt, _: &[u8]) -> Result<Reported, Error> {
        recorded!(self, Reported)
    }

    async fn read_results(&self, _: &[JobId]) -> Result<Vec<Option<JobResult>>, Error> {
        recorded!(self, Results)
    }

    async fn wait_result(
        &self,
        _: &JobId,
        _: Duration,
    ) -> Result<Option<JobResult>, Error> {
        Err(not_recorded("no scene waits for a result".to_owned()))
    }
}

#[async_trait]
impl Operator for Replies {
    async fn stats(&self) -> Result<Stats, Error> {
        recorded!(self, Stats)
    }

    async fn peek(&self, _: &PeekRequest) -> Result<Page, Error> {
        recorded!(self, Peeked)
    }

    async fn redrive(&self, _: &Selection) -> Result<Redriven, Error> {
        recorded!(self, Redriven)
    }

    async fn purge_dead(&self, _: &Selection) -> Result<u64, Error> {
        recorded!(self, Removed)
    }

    async fn purge(&self) -> Result<u64, Error> {
        recorded!(self, Removed)
    }

    async fn cancel(&self, _: &JobId) -> Result<Cancelled, Error> {
        recorded!(self, Cancelled)
    }

    async fn pause(&self) -> Result<(), Error> {
        recorded!(self, Steered)
    }

    async fn resume(&self) -> Result<(), Error> {
        recorded!(self, Steered)
    }

    async fn audit(&self) -> Result<Audit, Error> {
        recorded!(self, Audit)
    }

    fn inspect_queue(&self) -> Option<&dyn InspectQueue> {
        let is_inspected = self.can.supports(Capability::Inspect);
        is_inspected.then_some(self as &dyn InspectQueue)
    }

    fn restore_queue(&self) -> Option<&dyn RestoreQueue> {
        let restores = self.can.supports(Capability::Restore);
        restores.then_some(self as &dyn RestoreQueue)
    }
}

#[async_trait]
impl RestoreQueue for Replies {
    async fn restore(&self, _: &[JobView]) -> Result<Vec<Pushed>, Error> {
        recorded!(self, Pushed)
    }
}

#[async_trait]
impl InspectQueue for Replies {
    async fn job(&self, _: &JobId) -> Result<JobLookup, Error> {
        recorded!(self, Found)
    }

    async fn run_now(&self, _: &JobId) -> Result<RunNow, Error> {
        recorded!(self, Ran)
    }

    async fn workers(
        &self,
        _: Option<&PageCursor>,
        _: NonZeroU32,
    ) -> Result<WorkersPage, Error> {
        recorded!(self, Workers)
    }
}
