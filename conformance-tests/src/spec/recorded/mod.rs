//! The reference model applied to calls that ran elsewhere and were recorded.
//!
//! A recorded call is replayed on a queue that only repeats the recorded reply. So the
//! reference can judge calls that ran at the same time, in any order in which they may
//! have taken effect.

mod judge;
mod queue;

use std::{collections::BTreeSet, num::NonZeroU32, sync::Arc, time::Duration};

use relq_core::{
    Delivery, Error, Queue, Stats,
    batch::{Added, BatchId, BatchStatus, Created},
    capabilities::Capabilities,
    operator::{Audit, Cancelled, JobLookup, Page, Redriven, RunNow, WorkersPage},
    outcome::{Extended, Pushed, Recovered, Released, Settled},
    results::{JobResult, Reported},
    schedule::{ScheduleStored, Schedules, Ticked},
};

pub(crate) use self::judge::Judge;
use super::{
    draft,
    operation::{Act, Operation, Who},
    reference::Reference,
};

/// The recorded result of a call.
pub(crate) type Returned<T> = Result<T, Arc<Error>>;

macro_rules! replies {
    ($($kind:ident($answer:ty),)+) => {
        /// The recorded reply to one call on a queue.
        #[derive(Debug, Clone)]
        pub(crate) enum Reply {
            $($kind(Returned<$answer>),)+
        }

        impl Reply {
            /// The error of the call, if it failed.
            pub(crate) fn into_error(self) -> Option<Arc<Error>> {
                match self {
                    $(Self::$kind(answer) => answer.err(),)+
                }
            }
        }
    };
}

replies! {
    Pushed(Vec<Pushed>),
    Claimed(Vec<Delivery>),
    Settled(Vec<Settled>),
    Extended(Vec<Extended>),
    Released(Released),
    Recovered(Recovered),
    Cancelled(Cancelled),
    Redriven(Redriven),
    Removed(u64),
    Steered(()),
    Stats(Stats),
    Audit(Audit),
    Created(Created),
    Added(Added),
    Status(Option<BatchStatus>),
    Listed(Vec<BatchStatus>),
    Peeked(Page),
    ScheduleStored(ScheduleStored),
    ScheduleRemoved(bool),
    Schedules(Schedules),
    Ticked(Ticked),
    Reported(Reported),
    Results(Vec<Option<JobResult>>),
    WorkerReported(()),
    Found(JobLookup),
    Ran(RunNow),
    Workers(WorkersPage),
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
