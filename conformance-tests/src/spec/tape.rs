//! The reference model applied to calls that ran elsewhere and were recorded.
//!
//! A recorded call is replayed on a queue that only repeats the recorded reply. So the
//! reference can judge calls that ran at the same time, in any order in which they may
//! have taken effect.

use std::{
    collections::{BTreeSet, VecDeque},
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use bytes::Bytes;
use relq_core::{
    ClaimRequest, Delivery, Error, JobId, NewJob, Operator, PushToken, Queue,
    QueueName, Receipt, ReliableQueue, Settlement, Stats, WorkerId,
    batch::{Added, BatchId, BatchQueue, BatchStatus, Change, Created, NewBatch},
    capabilities::{Capabilities, Capability},
    error::{self, Effect, ErrorContext},
    operator::{Audit, Cancelled, Page, PeekRequest, Redriven, Selection},
    outcome::{Extended, Pushed, Recovered, Released, Settled},
    results::{JobResult, Reported, ResultQueue},
    schedule::{ScheduleName, ScheduleQueue, ScheduleStored, Schedules, Tick, Ticked},
};

use super::{
    draft,
    drained::FoundAt,
    operation::{Act, Operation, Who},
    pushing::ms,
    reference::{CheckResult, Reference},
    runner::Runner,
};

/// The recorded result of a call.
pub(crate) type Returned<T> = Result<T, Arc<Error>>;

/// The recorded reply to one call on a queue.
#[derive(Debug, Clone)]
pub(crate) enum Reply {
    Pushed(Returned<Vec<Pushed>>),
    Claimed(Returned<Vec<Delivery>>),
    Settled(Returned<Vec<Settled>>),
    Extended(Returned<Vec<Extended>>),
    Released(Returned<Released>),
    Recovered(Returned<Recovered>),
    Cancelled(Returned<Cancelled>),
    Redriven(Returned<Redriven>),
    Removed(Returned<u64>),
    Steered(Returned<()>),
    Stats(Returned<Stats>),
    Audit(Returned<Audit>),
    Created(Returned<Created>),
    Added(Returned<Added>),
    Status(Returned<Option<BatchStatus>>),
    Listed(Returned<Vec<BatchStatus>>),
    Peeked(Returned<Page>),
    ScheduleStored(Returned<ScheduleStored>),
    ScheduleRemoved(Returned<bool>),
    Schedules(Returned<Schedules>),
    Ticked(Returned<Ticked>),
    Reported(Returned<Reported>),
    Results(Returned<Vec<Option<JobResult>>>),
}

impl Reply {
    /// The error of the call, if it failed.
    pub(crate) fn into_error(self) -> Option<Arc<Error>> {
        match self {
            Self::Pushed(Err(error))
            | Self::Claimed(Err(error))
            | Self::Settled(Err(error))
            | Self::Extended(Err(error))
            | Self::Released(Err(error))
            | Self::Recovered(Err(error))
            | Self::Cancelled(Err(error))
            | Self::Redriven(Err(error))
            | Self::Removed(Err(error))
            | Self::Steered(Err(error))
            | Self::Stats(Err(error))
            | Self::Audit(Err(error))
            | Self::Created(Err(error))
            | Self::Added(Err(error))
            | Self::Status(Err(error))
            | Self::Listed(Err(error))
            | Self::Peeked(Err(error))
            | Self::ScheduleStored(Err(error))
            | Self::ScheduleRemoved(Err(error))
            | Self::Schedules(Err(error))
            | Self::Ticked(Err(error))
            | Self::Reported(Err(error))
            | Self::Results(Err(error)) => Some(error),
            _ => None,
        }
    }
}

/// A recorded operation of an actor.
#[derive(Debug, Clone)]
pub(crate) struct RecordedCall {
    pub(crate) operation: Operation,
    /// How many jobs are pushed by the operations before this one in the scene. The
    /// numbers of this operation's payloads continue from there.
    pub(crate) payloads: usize,
    /// The replies to the operation's calls on the queue. Empty when the actor died
    /// before it got one.
    pub(crate) replies: Vec<Reply>,
    pub(crate) is_lost: bool,
    /// Whether a connection of the actor broke during the operation.
    pub(crate) is_hit: bool,
    /// The time of the clock when the operation began. `None` if no time passed until its
    /// end.
    pub(crate) began_at: Option<Duration>,
}

impl RecordedCall {
    /// An operation that no fault hit and during which no other one ran.
    pub(crate) fn alone(
        operation: Operation,
        payloads: usize,
        replies: Vec<Reply>,
    ) -> Self {
        let (is_lost, is_hit, began_at) = (false, false, None);
        Self { operation, payloads, replies, is_lost, is_hit, began_at }
    }

    /// If the operation is a claim that waited and found nothing: the earliest time at
    /// which the claim may have seen that no job was ready.
    fn empty_from(&self, can: &Capabilities) -> Option<Duration> {
        let Act::Claim { wait, .. } = self.operation.act else { return None };
        match self.replies.first() {
            Some(Reply::Claimed(Ok(none))) if none.is_empty() && wait > 0 => {
                let began_at = self.began_at.unwrap_or_default();
                Some((began_at + draft::wait(wait)).saturating_sub(can.lateness))
            }
            _ => None,
        }
    }
}

/// The stats, the audit, the batches and the schedules, read while no call was running.
#[derive(Debug, Clone)]
pub(crate) struct Look {
    replies: Vec<Reply>,
    statuses: Vec<(BatchId, Returned<Option<BatchStatus>>)>,
}

impl Look {
    /// Reads the stats, the audit, the schedules, and the batches of these numbers.
    pub(crate) async fn at(queue: &dyn Queue, numbers: &BTreeSet<u8>) -> Self {
        let (mut replies, mut statuses) = (Vec::new(), Vec::new());
        if let Some(batches) = queue.batch_queue() {
            let limit = NonZeroU32::new(100).expect("not zero");
            let listed = batches.list_batches(None, limit).await;
            replies.push(Reply::Listed(returned(listed)));
            for number in numbers {
                let id = Reference::batch_id(*number);
                let status = returned(batches.batch(&id).await);
                statuses.push((id, status));
            }
        }
        if let Some(scheduler) = queue.schedule_queue() {
            replies.push(Reply::Schedules(returned(scheduler.schedules().await)));
        }
        replies.push(Reply::Stats(returned(queue.stats().await)));
        replies.push(Reply::Audit(returned(queue.audit().await)));
        Self { replies, statuses }
    }
}

/// Puts the error of a result into an `Arc`, so that the record of it can be cloned.
pub(crate) fn returned<T>(answer: Result<T, Error>) -> Returned<T> {
    answer.map_err(Arc::new)
}

/// A reference model that judges recorded calls.
pub(crate) struct Judge {
    runner: Runner,
    replies: Arc<Replies>,
}

impl Judge {
    /// A judge that begins with an empty queue.
    pub(crate) fn new(can: &Capabilities) -> Self {
        let replies = Arc::new(Replies {
            can: can.clone(),
            left: Mutex::default(),
            statuses: Mutex::default(),
        });
        let queue = QueueName::new("recorded").expect("a valid name");
        let repeating: Arc<dyn Queue> = Arc::clone(&replies) as _;
        let runner = Runner::of_recorded(queue, &repeating);
        Self { runner, replies }
    }

    /// Makes `cancel` and `redrive-one` count back from the newest job so far, whatever
    /// is pushed later.
    pub(crate) fn fix_jobs(&mut self) {
        self.runner.fixed_jobs = Some(self.runner.reference.jobs.len());
    }

    /// Judges a call as if no other call ran at the same time.
    pub(crate) async fn call(&mut self, call: &RecordedCall) -> CheckResult {
        self.replies.put(call.replies.iter().cloned());
        self.runner.payloads = call.payloads;
        self.runner.actors.next_is_lost = call.is_lost;
        self.runner.actors.next_is_hit = call.is_hit;
        if let Some(from) = call.empty_from(&self.replies.can)
            && Duration::from_millis(self.runner.reference.now) < from
        {
            return Err(
                "R6: a claim found nothing before the end of its wait".to_owned()
            );
        }
        self.runner.reference.call_began = call.began_at.map(ms);
        self.runner.act(&call.operation).await?;
        self.runner.reference.call_began = None;
        self.runner.actors.next_is_lost = false;
        self.runner.actors.next_is_hit = false;
        self.runner.reference.conclude()?;
        self.replies.is_empty()
    }

    /// Returns, for each job, the states in which a drain of the queue may find it after
    /// `horizon`: see [`Reference::drained`].
    pub(crate) fn drained(&self, horizon: Duration) -> Vec<(Bytes, BTreeSet<FoundAt>)> {
        self.runner.reference.drained(ms(horizon))
    }

    /// Returns, for each schedule, the states in which it may be, as text. `None` stands
    /// for no schedule.
    pub(crate) fn schedules(&self) -> Vec<Vec<Option<String>>> {
        self.runner.reference.schedules_told()
    }

    /// Returns, for each job, what may be told of it after a drain, as text: see
    /// [`Reference::told_when_drained`].
    pub(crate) fn told(&self, horizon: Duration) -> Vec<Vec<Option<String>>> {
        self.runner.reference.told_when_drained(ms(horizon))
    }

    /// Judges the stats and the audit, which were read while no call was running.
    pub(crate) async fn look(&mut self, look: Look) -> CheckResult {
        self.replies.put(look.replies);
        self.replies.statuses().extend(look.statuses);
        let judged = self.runner.look().await;
        self.replies.statuses().clear();
        judged
    }

    /// Returns a text that is equal to that of another judge if both judge every later
    /// call alike.
    pub(crate) fn fingerprint(&self) -> String {
        self.runner.fingerprint()
    }

    /// Checks that no job was delivered more often than a valid reason explains (R6),
    /// and that all batches have ended.
    pub(crate) fn end(&self) -> CheckResult {
        self.runner.reference.batches_have_ended()?;
        self.runner.reference.duplicates_are_bounded()
    }
}

/// The number in the worker id of each actor. It is fixed, so that it does not depend
/// on the order of the calls.
pub(crate) const WORKERS: [(Who, usize); 6] = [
    (Who::WorkerA, 1),
    (Who::WorkerB, 2),
    (Who::Producer, 3),
    (Who::Operator, 4),
    (Who::Reaper, 5),
    (Who::Nobody, 6),
];

/// A queue whose calls return the recorded replies, in order.
struct Replies {
    can: Capabilities,
    left: Mutex<VecDeque<Reply>>,
    /// The statuses of batches that were read while no call was running.
    statuses: Mutex<Vec<(BatchId, Returned<Option<BatchStatus>>)>>,
}

impl Replies {
    fn put(&self, replies: impl IntoIterator<Item = Reply>) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).extend(replies);
    }

    fn next(&self) -> Option<Reply> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
    }

    fn statuses(
        &self,
    ) -> MutexGuard<'_, Vec<(BatchId, Returned<Option<BatchStatus>>)>> {
        self.statuses.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn is_empty(&self) -> CheckResult {
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
}
