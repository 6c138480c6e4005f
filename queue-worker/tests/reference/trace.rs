//! Records the events of a run in their order: calls, handlers, requests to the worker.

use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use relq_core::{
    Bytes, Disposition, Error, Settlement,
    error::{Effect, Operation, RetryAdvice},
    outcome::{Extended, Recovered, Settled},
};
use relq_worker::{Cancellation, Summary};

/// The token of a lease, which identifies one delivery.
pub(crate) type Lease = Bytes;

#[derive(Debug, Clone)]
pub(crate) struct Event {
    /// The time of the event by the store's clock.
    pub at: Duration,
    pub what: What,
}

#[derive(Debug, Clone)]
pub(crate) enum What {
    /// The worker sent a call, or began to open the connection of its heartbeats.
    Sent {
        call: usize,
        request: Request,
    },
    Replied {
        call: usize,
        reply: Reply,
    },
    Started {
        lease: Lease,
    },
    Asked {
        lease: Lease,
        why: Cancellation,
    },
    Ended {
        lease: Lease,
        result: Result<(), Expected>,
    },
    /// The handler's future was dropped before it ended.
    Dropped {
        lease: Lease,
    },
    Suspended {
        length: Duration,
    },
    StopAsked,
    HaltAsked,
    /// The worker's `run` returned.
    Over {
        result: Result<(), String>,
        summary: Summary,
    },
    /// The worker has not ended, but no event can happen any more.
    Hangs,
}

#[derive(Debug, Clone)]
pub(crate) struct Request {
    pub operation: Operation,
    pub settlements: Vec<Settlement>,
    pub ask: Option<Ask>,
    pub extended: Vec<Lease>,
    /// The lease length that a heartbeat asks for.
    pub length: Duration,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Ask {
    pub max: usize,
    pub wait: Duration,
}

/// The results in a reply, one for each operation of the call. The field of any other
/// operation is `None`.
#[derive(Debug, Clone, Default)]
pub(crate) struct Reply {
    pub settled: Option<Result<Vec<Settled>, Refusal>>,
    pub claimed: Option<Result<Vec<Delivered>, Refusal>>,
    pub extended: Option<Result<Vec<Extended>, Refusal>>,
    pub recovered: Option<Result<Recovered, Refusal>>,
    pub released: Option<Result<u64, Refusal>>,
    pub other: Option<Result<(), Refusal>>,
}

impl Reply {
    /// Whether the reply can wake the heartbeat thread: that thread has sent the call,
    /// or the reply delivers jobs whose leases it must extend.
    pub(crate) fn concerns_the_heartbeat(&self) -> bool {
        let claims = matches!(&self.claimed, Some(Ok(jobs)) if !jobs.is_empty());
        claims || self.extended.is_some() || self.other.is_some()
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Delivered {
    pub job: usize,
    pub lease: Lease,
    pub attempt: u32,
    pub is_last: bool,
    pub length: Duration,
}

/// The properties of a call's error that the checks read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub is_uncertain: bool,
    pub needs_help: bool,
    pub is_never: bool,
    pub is_wrong_server: bool,
    /// Whether the store refused the content of the call.
    pub is_of_content: bool,
}

impl From<&Error> for Refusal {
    fn from(error: &Error) -> Self {
        Self {
            is_uncertain: error.effect() != Effect::No,
            needs_help: error.needs_help(),
            is_never: error.retry_advice() == RetryAdvice::Never,
            is_wrong_server: matches!(error, Error::WrongServer { .. }),
            is_of_content: matches!(
                error,
                Error::Invalid { .. } | Error::Unsupported { .. }
            ),
        }
    }
}

/// The settlement that a handler's failure must lead to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Expected {
    Retry { error: String },
    RetryAfter { after: Duration, error: String },
    Dead { error: String },
    Discard,
    Postpone { after: Duration },
}

impl Expected {
    pub(crate) fn is_met_by(
        &self,
        disposition: &Disposition,
        longest: Duration,
    ) -> bool {
        match (self, disposition) {
            (Self::Retry { error }, Disposition::Retry { after, error: sent }) => {
                sent == error && *after <= longest
            }
            (
                Self::RetryAfter { after, error },
                Disposition::Retry { after: sent_after, error: sent },
            ) => sent == error && after == sent_after,
            (Self::Dead { error }, Disposition::Dead { error: sent }) => error == sent,
            (Self::Discard, Disposition::Discard) => true,
            (Self::Postpone { after }, Disposition::Postpone { after: sent }) => {
                after == sent
            }
            _ => false,
        }
    }
}

/// The recorded events. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct Trace(Arc<Mutex<Recorded>>);

#[derive(Debug, Default)]
struct Recorded {
    events: Vec<Event>,
    calls: usize,
    is_ending: bool,
}

impl Trace {
    pub(crate) fn record(&self, at: Duration, what: What) {
        self.0.lock().unwrap().events.push(Event { at, what });
    }

    /// Records that a call is sent, and returns its number.
    pub(crate) fn sent(&self, at: Duration, request: Request) -> usize {
        let mut recorded = self.0.lock().unwrap();
        recorded.calls += 1;
        recorded.is_ending |= request.operation == Operation::ReleaseWorker;
        let call = recorded.calls;
        recorded.events.push(Event { at, what: What::Sent { call, request } });
        call
    }

    /// The lease under which this attempt of a job was delivered last.
    pub(crate) fn latest_lease(&self, job: usize, attempt: u32) -> Lease {
        let recorded = self.0.lock().unwrap();
        let claimed =
            recorded.events.iter().rev().filter_map(|event| match &event.what {
                What::Replied {
                    reply: Reply { claimed: Some(Ok(jobs)), .. }, ..
                } => Some(jobs),
                _ => None,
            });
        claimed
            .flatten()
            .find(|one| one.job == job && one.attempt == attempt)
            .map(|one| one.lease.clone())
            .expect("a handler runs only what was delivered")
    }

    /// Whether the worker has made the last call of its shutdown.
    pub(crate) fn is_ending(&self) -> bool {
        self.0.lock().unwrap().is_ending
    }

    /// Whether `run` has returned.
    pub(crate) fn is_over(&self) -> bool {
        let recorded = self.0.lock().unwrap();
        let last = recorded.events.last();
        last.is_some_and(|event| matches!(event.what, What::Over { .. }))
    }

    pub(crate) fn calls(&self) -> usize {
        self.0.lock().unwrap().calls
    }

    pub(crate) fn events(&self) -> Vec<Event> {
        self.0.lock().unwrap().events.clone()
    }
}
