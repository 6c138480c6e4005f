//! A scenario: the settings of a worker, the jobs, what their handlers do, what goes
//! wrong, and how the worker is ended. All times are milliseconds.

use std::time::Duration;

use relq_core::error::Operation;

use crate::other_queue::OtherStore;

pub(crate) const fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

#[derive(Debug, Clone)]
pub(crate) struct Scenario {
    pub seed: u64,
    pub settings: Settings,
    pub jobs: Vec<JobPlan>,
    /// The jobs that a dead worker holds at the start, and the length of their leases.
    pub abandoned: Abandoned,
    pub faults: Vec<CallFault>,
    pub outages: Vec<Outage>,
    pub suspends: Vec<Suspend>,
    pub end: End,
    /// The other queue of the worker, which comes first in its strict order. `None` for a
    /// worker on one queue.
    pub other_queue: Option<OtherStore>,
}

#[derive(Debug, Clone)]
pub(crate) struct Settings {
    pub concurrency: u32,
    /// How many jobs may wait for a slot.
    pub prefetch: u32,
    pub lease: u64,
    pub grace: u64,
    pub timeout: Option<u64>,
    pub give_up_after: u64,
    pub reap_every: Option<u64>,
    pub max_jobs_per_call: u32,
    pub recover_page: u32,
    /// Whether the backend has one lease for all jobs of a worker.
    pub leases_are_shared: bool,
}

#[derive(Debug, Clone)]
pub(crate) struct JobPlan {
    pub push_at: u64,
    pub lease: Option<u64>,
    pub max_attempts: u16,
    /// How the handler acts at each of its starts. Later starts succeed at once.
    pub attempts: Vec<AttemptPlan>,
    pub cancel_at: Option<u64>,
}

#[derive(Debug, Clone)]
pub(crate) struct AttemptPlan {
    pub runs: u64,
    pub result: HandlerResult,
    pub on_cancellation: OnCancellation,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum HandlerResult {
    Done,
    Retry,
    RetryAfter(u64),
    Dead,
    Discard,
    Postpone(u64),
    Panic,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OnCancellation {
    Continue,
    End,
}

#[derive(Debug, Clone)]
pub(crate) struct Abandoned {
    pub jobs: u32,
    pub lease: u64,
}

/// The fault of one call of an operation. Calls are counted from 0.
#[derive(Debug, Clone)]
pub(crate) struct CallFault {
    pub operation: Operation,
    pub nth: u32,
    pub fault: Fault,
}

#[derive(Debug, Clone, Copy)]
pub(crate) struct Fault {
    /// How long the request travels to the store, and the reply back, in milliseconds.
    pub before: u64,
    pub after: u64,
    pub kind: FaultKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum FaultKind {
    /// The call succeeds, and its reply arrives.
    None,
    /// The worker gets an error in place of the reply. The call may have taken effect.
    LostReply(CallEffect),
    /// The worker never gets a reply. The call may have taken effect.
    Silence(CallEffect),
    /// A heartbeat succeeds, but says nothing about every second lease. Those leases may
    /// have been extended.
    InPart(CallEffect),
    /// The call took effect, and its reply cannot be read.
    Unreadable,
    Unavailable,
    Full,
    ReadOnly,
    Denied,
    Unusable,
    Invalid,
    Unsupported,
    WrongServer,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum CallEffect {
    Applied,
    NotApplied,
}

impl FaultKind {
    pub(crate) fn takes_effect(self) -> bool {
        match self {
            Self::None | Self::InPart(_) | Self::Unreadable => true,
            Self::LostReply(effect) | Self::Silence(effect) => {
                effect == CallEffect::Applied
            }
            _ => false,
        }
    }
}

/// A time in which every call that is sent fails.
#[derive(Debug, Clone)]
pub(crate) struct Outage {
    /// The operation whose calls fail. `None` if all calls fail.
    pub operation: Option<Operation>,
    pub from: u64,
    pub length: u64,
    pub kind: FaultKind,
}

#[derive(Debug, Clone)]
pub(crate) struct Suspend {
    pub at: u64,
    pub length: u64,
}

#[derive(Debug, Clone, Copy)]
pub(crate) enum End {
    /// The worker is asked to stop at `at`, and to stop hard `halt_after` ms later.
    Stop { at: u64, halt_after: Option<u64> },
    /// The worker is asked to stop when every job has ended.
    WhenFinished,
    /// The worker runs until the queue is empty.
    UntilEmpty,
}

impl Scenario {
    /// How many jobs the worker may hold at once: one a slot, and those that wait.
    pub(crate) fn most_held(&self) -> usize {
        (self.settings.concurrency + self.settings.prefetch) as usize
    }

    /// Returns the time, by the store's clock, at which the last push, outage and
    /// suspend of the scenario are over.
    pub(crate) fn quiet_from(&self) -> Duration {
        let suspended: u64 = self.suspends.iter().map(|one| one.length).sum();
        let pushes = self.jobs.iter().map(|job| job.push_at);
        let outages = self.outages.iter().map(|one| one.from + one.length);
        let suspends = self.suspends.iter().map(|one| one.at);
        let last = pushes.chain(outages).chain(suspends).max().unwrap_or(0);
        ms(last + suspended)
    }

    /// Returns a time by which every job has surely ended. Most runs need far less.
    pub(crate) fn longest(&self) -> Duration {
        let runs = |job: &JobPlan| -> u64 {
            let retries = 20_000 * u64::from(job.max_attempts);
            let attempts = job.attempts.iter().map(|attempt| attempt.runs);
            retries + 4 * attempts.sum::<u64>() + 4 * job.lease.unwrap_or(0)
        };
        let runs: u64 = self.jobs.iter().map(runs).sum();
        let Settings { lease, grace, .. } = self.settings;
        let faults = self.faults.iter().map(|one| {
            60_000 + one.fault.before + one.fault.after + 3 * (lease + grace)
        });
        let rest = runs + faults.sum::<u64>() + self.abandoned.lease + 10 * lease;
        self.quiet_from() + ms(rest) + ms(120_000)
    }

    /// The fault of the call number `nth` of `operation`, sent at `now`.
    pub(crate) fn fault(&self, operation: Operation, nth: u32, now: Duration) -> Fault {
        let planned = self
            .faults
            .iter()
            .find(|fault| fault.operation == operation && fault.nth == nth);
        if let Some(planned) = planned {
            return planned.fault;
        }
        let is_now = |outage: &&Outage| {
            let is_of_it = outage.operation.is_none_or(|one| one == operation);
            is_of_it
                && (outage.from..outage.from + outage.length).contains(&millis(now))
        };
        let kind =
            self.outages.iter().find(is_now).map_or(FaultKind::None, |one| one.kind);
        let spread = u64::from(nth).wrapping_mul(7) + self.seed;
        Fault { before: 1 + spread % 3, after: 1 + spread % 2, kind }
    }
}

/// Whether the job with this index keeps its result: every second one does.
pub(crate) fn keeps_result(job: usize) -> bool {
    job.is_multiple_of(2)
}

pub(crate) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap()
}
