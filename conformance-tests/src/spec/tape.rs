//! Calls that were made elsewhere, judged by the reference.
//!
//! A recorded call is replayed on a queue that only repeats the recorded reply. So the
//! reference judges calls that ran at the same time, in any order in which they may
//! have taken effect.

use std::{
    collections::VecDeque,
    fmt,
    num::NonZeroU32,
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use async_trait::async_trait;
use relq_core::{
    ClaimRequest, Delivery, Error, JobId, NewJob, Operator, PushToken, Queue,
    QueueName, Receipt, ReliableQueue, Settlement, Stats, WorkerId,
    capabilities::Capabilities,
    error::{self, Effect, ErrorContext},
    operator::{Audit, Cancelled, Page, PeekRequest, Redriven, Selection},
    outcome::{Extended, Pushed, Recovered, Released, Settled},
};

use super::{
    operation::{Operation, Who},
    reference::CheckResult,
    runner::Runner,
};
use crate::Subject;

/// What a call returned. Of an error, its effect and its text are kept.
pub(crate) type Returned<T> = Result<T, (Effect, String)>;

/// The reply to one call on a queue.
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
}

/// A call of an actor.
#[derive(Debug, Clone)]
pub(crate) struct RecordedCall {
    pub(crate) operation: Operation,
    /// How many jobs were pushed by calls that the scene names before this one.
    pub(crate) payloads: usize,
    /// The replies to its calls on the queue. Empty when the actor died meanwhile.
    pub(crate) replies: Vec<Reply>,
    pub(crate) is_lost: bool,
}

/// The error of a call, as it is recorded.
pub(crate) fn returned<T>(answer: Result<T, Error>) -> Returned<T> {
    answer.map_err(|error| (error.effect(), error.full_message()))
}

/// A reference that is fed with recorded calls.
pub(crate) struct Judge {
    runner: Runner,
    replies: Arc<Replies>,
}

impl Judge {
    /// A reference of an empty queue.
    pub(crate) fn new(subject: Arc<dyn Subject>, can: &Capabilities) -> Self {
        let replies =
            Arc::new(Replies { can: can.clone(), left: Mutex::new(VecDeque::new()) });
        let queue = QueueName::new("recorded").expect("a valid name");
        let repeating: Arc<dyn Queue> = Arc::clone(&replies) as _;
        let runner = Runner::of_recorded(subject, queue, &repeating);
        Self { runner, replies }
    }

    /// From now on `cancel` and `redrive-one` count back from the newest of these jobs,
    /// whatever is pushed later.
    pub(crate) fn fix_jobs(&mut self) {
        self.runner.fixed_jobs = Some(self.runner.reference.jobs.len());
    }

    /// Judges a call, as if no other call was under way.
    pub(crate) async fn call(&mut self, call: &RecordedCall) -> CheckResult {
        self.replies.put(call.replies.iter().cloned());
        self.runner.payloads = call.payloads;
        self.runner.actors.next_is_lost = call.is_lost;
        self.runner.act(&call.operation).await?;
        self.runner.actors.next_is_lost = false;
        self.runner.reference.conclude()?;
        self.replies.is_empty()
    }

    /// Judges the stats and the audit of a moment when no call is under way.
    pub(crate) async fn look(&mut self, replies: [Reply; 2]) -> CheckResult {
        self.replies.put(replies);
        self.runner.look().await
    }

    /// Checks that no job ran too often.
    pub(crate) fn end(&self) -> CheckResult {
        self.runner.reference.duplicates_are_bounded()
    }
}

/// The worker of each actor. Every actor has one, so that its name does not depend on
/// the order of the calls.
pub(crate) const WORKERS: [(Who, usize); 6] = [
    (Who::WorkerA, 1),
    (Who::WorkerB, 2),
    (Who::Producer, 3),
    (Who::Operator, 4),
    (Who::Reaper, 5),
    (Who::Nobody, 6),
];

/// The queue that repeats replies.
struct Replies {
    can: Capabilities,
    left: Mutex<VecDeque<Reply>>,
}

impl Replies {
    fn put(&self, replies: impl IntoIterator<Item = Reply>) {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).extend(replies);
    }

    fn next(&self) -> Option<Reply> {
        self.left.lock().unwrap_or_else(PoisonError::into_inner).pop_front()
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

/// An error with the effect and the text of the recorded one.
fn error((effect, text): (Effect, String)) -> Error {
    let at = ErrorContext { backend: "recorded", operation: error::Operation::Connect };
    let source = text.into();
    match effect {
        Effect::No => Error::Unavailable { at, source },
        Effect::Maybe => Error::Interrupted { at, source },
        Effect::Yes => Error::Unreadable { at, source },
    }
}

/// The recorded reply of that kind.
macro_rules! recorded {
    ($self:ident, $kind:ident) => {
        match $self.next() {
            Some(Reply::$kind(answer)) => answer.map_err(error),
            other => {
                let kind = stringify!($kind);
                let text = format!("the record has no {kind}, but {other:?}");
                Err(error((Effect::Yes, text)))
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

    async fn open_another(&self) -> Result<Arc<dyn ReliableQueue>, Error> {
        Err(error((Effect::No, "a record is not opened twice".to_owned())))
    }
}

#[async_trait]
impl Operator for Replies {
    async fn stats(&self) -> Result<Stats, Error> {
        recorded!(self, Stats)
    }

    async fn peek(&self, _: &PeekRequest) -> Result<Page, Error> {
        Err(error((Effect::No, "no page is recorded".to_owned())))
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
