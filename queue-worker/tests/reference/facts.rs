//! Sorts the trace of a run by call and by delivery, for the checks that read it.

use std::{collections::BTreeMap, time::Duration};

use relq_core::{
    error::Operation,
    outcome::{Extended, Settled},
};
use relq_worker::{Cancellation, Summary};

use crate::{
    observed::Events,
    scenario::{FaultKind, Scenario, ms},
    simulation::Finished,
    trace::{Delivered, Event, Expected, Lease, Refusal, Reply, Request, What},
};

/// How far two times may differ by rounding: clocks are read in whole milliseconds.
pub(crate) const ROUNDING: Duration = Duration::from_millis(3);

/// How long the worker waits at least for the reply to a claim or settlement before it
/// gives up the call. A suspend of the machine does not count.
pub(crate) const CALL_LIMIT: Duration = Duration::from_secs(60);

/// How long the worker waits, after a suspend, for the store to confirm a lease.
const CONFIRMATION: Duration = Duration::from_secs(1);

/// When an event happened: its time, and its number among all events.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Moment {
    pub at: Duration,
    pub index: usize,
}

pub(crate) struct Call {
    pub sent: Moment,
    pub request: Request,
    pub replied: Option<(Moment, Reply)>,
    /// Until when the worker surely waits for the reply.
    pub waits_until: Duration,
}

/// One delivery of a job: its lease, and the events that belong to it.
pub(crate) struct Held {
    pub job: usize,
    pub lease: Lease,
    pub is_last: bool,
    pub length: Duration,
    pub claim_sent: Duration,
    pub delivered: Moment,
    pub started: Vec<Moment>,
    pub ended: Option<(Moment, Result<(), Expected>)>,
    pub dropped: Option<Moment>,
    pub asked: Option<(Moment, Cancellation)>,
    /// The numbers of the calls that settle this lease, and of those that extend it.
    pub settles: Vec<usize>,
    pub extends: Vec<usize>,
}

pub(crate) struct Facts {
    pub scenario: Scenario,
    pub events: Vec<Event>,
    pub observed: Events,
    pub calls: Vec<Call>,
    pub held: BTreeMap<Lease, Held>,
    pub suspends: Vec<Moment>,
    pub stop_asked: Option<Moment>,
    pub halt_asked: Option<Moment>,
    pub over: Option<(Moment, Result<(), String>, Summary)>,
    pub hangs: Option<Moment>,
    pub leased_at_end: usize,
    pub unfinished: u64,
}

impl Facts {
    pub(crate) fn of(finished: Finished) -> Self {
        let Finished { scenario, events, observed, leased_at_end, unfinished } =
            finished;
        let mut facts = Self {
            scenario,
            events: Vec::new(),
            observed,
            calls: Vec::new(),
            held: BTreeMap::new(),
            suspends: Vec::new(),
            stop_asked: None,
            halt_asked: None,
            over: None,
            hangs: None,
            leased_at_end,
            unfinished,
        };
        for (index, event) in events.iter().enumerate() {
            facts.note(Moment { at: event.at, index }, event.what.clone());
        }
        facts.events = events;
        for index in 0..facts.calls.len() {
            let sent = facts.calls[index].sent.at;
            facts.calls[index].waits_until = facts.after_awake(sent, CALL_LIMIT);
        }
        facts
    }

    /// Whether the worker claims jobs before a slot is free.
    pub(crate) fn prefetches(&self) -> bool {
        self.scenario.settings.prefetch > 0
    }

    fn note(&mut self, now: Moment, what: What) {
        match what {
            What::Sent { call, request } => self.sent(call - 1, now, request),
            What::Replied { call, reply } => self.replied(call - 1, now, reply),
            What::Started { lease, .. } => self.lease(&lease).started.push(now),
            What::Asked { lease, why } => self.lease(&lease).asked = Some((now, why)),
            What::Ended { lease, result } => {
                self.lease(&lease).ended = Some((now, result));
            }
            What::Dropped { lease } => self.lease(&lease).dropped = Some(now),
            What::Suspended { .. } => self.suspends.push(now),
            What::StopAsked => self.stop_asked = Some(now),
            What::HaltAsked => self.halt_asked = Some(now),
            What::Over { result, summary } => self.over = Some((now, result, summary)),
            What::Hangs => self.hangs = Some(now),
        }
    }

    fn lease(&mut self, lease: &Lease) -> &mut Held {
        self.held.get_mut(lease).expect("only what was delivered is traced")
    }

    fn sent(&mut self, call: usize, sent: Moment, request: Request) {
        for settlement in &request.settlements {
            self.lease(settlement.receipt.token()).settles.push(call);
        }
        request.extended.iter().for_each(|lease| self.lease(lease).extends.push(call));
        let waits_until = sent.at;
        self.calls.push(Call { sent, request, replied: None, waits_until });
        assert_eq!(self.calls.len(), call + 1);
    }

    fn replied(&mut self, call: usize, now: Moment, reply: Reply) {
        let claim_sent = self.calls[call].sent.at;
        for delivered in reply.claimed.iter().flatten().flatten() {
            let Delivered { job, lease, is_last, length, .. } = delivered.clone();
            let held = Held {
                job,
                lease: lease.clone(),
                is_last,
                length,
                claim_sent,
                delivered: now,
                started: Vec::new(),
                ended: None,
                dropped: None,
                asked: None,
                settles: Vec::new(),
                extends: Vec::new(),
            };
            self.held.insert(lease, held);
        }
        self.calls[call].replied = Some((now, reply));
    }

    /// The calls of an operation, in the order in which they were sent. A call that
    /// settles and claims belongs to both operations.
    pub(crate) fn calls_of(&self, operation: Operation) -> impl Iterator<Item = &Call> {
        self.calls.iter().filter(move |call| call.is(operation))
    }

    /// The replies to an operation, in the order in which they arrived. A call that
    /// settles and claims has two results; this returns that of the operation.
    pub(crate) fn replies(
        &self,
        operation: Operation,
    ) -> Vec<(Moment, &Call, Result<(), Refusal>)> {
        let mut replies: Vec<_> = self
            .calls_of(operation)
            .filter_map(|call| {
                let (at, reply) = call.replied.as_ref()?;
                Some((*at, call, reply.of(operation)?))
            })
            .collect();
        replies.sort_by_key(|(at, ..)| at.index);
        replies
    }

    /// Returns when the lease may expire, as far as the worker knows at `moment`. An
    /// extension counts only if its reply arrives before the lease may expire, or at any
    /// time after a suspend.
    pub(crate) fn known_end(&self, held: &Held, moment: Moment) -> Duration {
        self.end_with(held, moment, |end, _| {
            !self.suspended(Duration::ZERO, end).is_zero()
        })
    }

    /// Like [`known_end`](Self::known_end), but after a suspend an extension counts only
    /// if its reply arrives while the worker surely waits for it. Any later reply may
    /// find that the worker has given up the lease.
    pub(crate) fn sure_end(&self, held: &Held, moment: Moment) -> Duration {
        self.end_with(held, moment, |end, reply| {
            self.suspends.iter().any(|one| {
                let waits_until = one.at + self.length_of(one) + CONFIRMATION;
                one.at <= end && reply + ROUNDING <= waits_until
            })
        })
    }

    /// Returns the end of the lease with all extensions whose reply has arrived at
    /// `moment`. If a reply arrives after the end that the worker knows, `counts` says
    /// whether it still counts, by that end and the time of the reply.
    fn end_with(
        &self,
        held: &Held,
        moment: Moment,
        counts: impl Fn(Duration, Duration) -> bool,
    ) -> Duration {
        let mut extensions: Vec<_> = held
            .extends
            .iter()
            .map(|&index| &self.calls[index])
            .filter(|call| {
                matches!(self.extended(held, call), Some(Extended::Until(_)))
            })
            .filter_map(|call| Some((call.replied.as_ref()?.0, call)))
            .filter(|(at, _)| at.index <= moment.index)
            .collect();
        extensions.sort_by_key(|(at, _)| at.index);
        let first = held.claim_sent + held.length;
        extensions.into_iter().fold(first, |end, (at, call)| {
            if at.at > end && !counts(end, at.at) {
                return end;
            }
            end.max(call.sent.at + call.request.length)
        })
    }

    /// Returns the result for one lease from the reply to a heartbeat.
    fn extended(&self, held: &Held, call: &Call) -> Option<Extended> {
        let (_, reply) = call.replied.as_ref()?;
        let position =
            call.request.extended.iter().position(|one| *one == held.lease)?;
        reply.extended.as_ref()?.as_ref().ok()?.get(position).copied()
    }

    /// The replies of heartbeats that report the lease as lost or cancelled.
    pub(crate) fn reports(
        &self,
        held: &Held,
    ) -> impl Iterator<Item = (Moment, Extended)> {
        held.extends.iter().filter_map(|&index| {
            let call = &self.calls[index];
            let extended = self.extended(held, call)?;
            let is_end = matches!(extended, Extended::Cancelled | Extended::LeaseLost);
            is_end.then(|| (call.replied.as_ref().expect("it was read").0, extended))
        })
    }

    /// The replies of heartbeats that say nothing about the lease.
    pub(crate) fn unknown(&self, held: &Held) -> impl Iterator<Item = Moment> {
        held.extends.iter().map(|&index| &self.calls[index]).filter_map(|call| {
            let is_unknown = self.extended(held, call) == Some(Extended::Unknown);
            is_unknown.then(|| call.replied.as_ref().expect("it was read").0)
        })
    }

    /// The first heartbeat reply that reports the lease as lost or cancelled.
    pub(crate) fn reported(&self, held: &Held) -> Option<(Moment, Extended)> {
        self.reports(held).min_by_key(|(at, _)| at.index)
    }

    /// The result that the store reported for a settlement of this lease.
    pub(crate) fn answer(&self, held: &Held) -> Option<(Moment, Settled)> {
        let answers = held.settles.iter().filter_map(|&index| {
            let call = &self.calls[index];
            let (at, reply) = call.replied.as_ref()?;
            let settled = reply.settled.as_ref()?.as_ref().ok()?;
            let mut settlements = call.request.settlements.iter();
            let position =
                settlements.position(|one| *one.receipt.token() == held.lease)?;
            Some((*at, *settled.get(position)?))
        });
        answers.min_by_key(|(at, _)| at.index)
    }

    /// Returns when the store refused the content of this lease's settlement. Only
    /// calls that carry no other settlement count.
    pub(crate) fn refused(&self, held: &Held) -> Option<Moment> {
        held.settles.iter().find_map(|&index| {
            let call = &self.calls[index];
            let (at, reply) = call.replied.as_ref()?;
            let refusal = reply.settled.as_ref()?.as_ref().err()?;
            let is_alone = call.request.settlements.len() == 1;
            (is_alone && refusal.is_of_content).then_some(*at)
        })
    }

    /// How much later than usual the worker may react if the machine was suspended
    /// between `from` and `until`. The worker notices a suspend at its next action, or
    /// within a second. Then it gives the store a second to confirm its leases.
    pub(crate) fn slack(&self, from: Duration, until: Duration) -> Duration {
        let is_in = |one: &&Moment| one.at <= until + ms(2000);
        let index = self.suspends.iter().filter(is_in).count();
        if index == 0 { ROUNDING } else { ms(2100) + self.suspended(from, until) }
    }

    /// How long the machine was suspended between `from` and `until`. Each suspend
    /// moves `until` later by its own length, because a suspended worker cannot act.
    pub(crate) fn suspended(&self, from: Duration, until: Duration) -> Duration {
        let mut suspended = Duration::ZERO;
        for moment in self.suspends.iter().filter(|one| one.at >= from) {
            if moment.at <= until + suspended + ms(2000) {
                suspended += self.length_of(moment);
            }
        }
        suspended
    }

    /// When the machine has run for `awake` after `from`.
    fn after_awake(&self, from: Duration, awake: Duration) -> Duration {
        let later = self.suspends.iter().filter(|one| one.at >= from);
        later.fold(from + awake, |end, suspend| {
            if suspend.at < end { end + self.length_of(suspend) } else { end }
        })
    }

    fn length_of(&self, suspend: &Moment) -> Duration {
        let What::Suspended { length } = self.events[suspend.index].what else {
            unreachable!("only suspends are noted as such")
        };
        length
    }

    /// How long the machine ran between two moments.
    pub(crate) fn awake(&self, from: Moment, until: Moment) -> Duration {
        let lengths = self.events[from.index..until.index].iter().map(|event| {
            if let What::Suspended { length } = event.what {
                length
            } else {
                Duration::ZERO
            }
        });
        until.at.saturating_sub(from.at).saturating_sub(lengths.sum())
    }

    /// When the run ended, or when the simulation gave up.
    pub(crate) fn end(&self) -> Moment {
        let over = self.over.as_ref().map(|(over, ..)| *over);
        over.or(self.hangs).expect("each run ends in one of two ways")
    }

    /// The last event that happened by `at`.
    pub(crate) fn last_by(&self, at: Duration) -> Moment {
        let after = self.events.partition_point(|event| event.at <= at);
        Moment { at, index: after.saturating_sub(1) }
    }

    /// When the worker was asked to end. `None` if it was not.
    pub(crate) fn asked_to_end(&self) -> Option<Moment> {
        let replies = self.replies(Operation::Stats);
        let is_refused = |refusal: Refusal| refusal.is_never;
        let is_by_stats = matches!(&self.over, Some((_, Ok(()), _)))
            || replies.iter().any(|(.., result)| result.is_err_and(is_refused));
        let until_empty = replies.last().map(|one| one.0).filter(|_| is_by_stats);
        let asked = [self.stop_asked, self.halt_asked, until_empty];
        asked.into_iter().flatten().min_by_key(|moment| moment.index)
    }

    pub(crate) fn has_silence(&self) -> bool {
        let is_silence = |kind: FaultKind| matches!(kind, FaultKind::Silence(_));
        self.scenario.faults.iter().any(|one| is_silence(one.fault.kind))
            || self.scenario.outages.iter().any(|one| is_silence(one.kind))
    }
}

impl Call {
    pub(crate) fn is(&self, operation: Operation) -> bool {
        self.request.operation == operation
            || (operation == Operation::Claim && self.request.ask.is_some())
    }

    /// Whether the reply to the call had arrived by this moment.
    pub(crate) fn is_over(&self, moment: Moment) -> bool {
        self.replied.as_ref().is_some_and(|(at, _)| at.index <= moment.index)
    }

    /// Whether the store refused this operation of the call. A call can have two: it
    /// can settle and claim.
    pub(crate) fn has_failed(&self, operation: Operation) -> bool {
        let result = self.replied.as_ref().and_then(|(_, reply)| reply.of(operation));
        result.is_some_and(|result| result.is_err())
    }

    /// Whether the reply to a heartbeat says nothing about one of its leases.
    pub(crate) fn leaves_unknown(&self) -> bool {
        let extended =
            self.replied.as_ref().and_then(|(_, reply)| reply.extended.as_ref());
        extended.is_some_and(|extended| {
            extended.as_ref().is_ok_and(|all| all.contains(&Extended::Unknown))
        })
    }

    /// Whether the call was pending at this moment. The worker gives up a call without
    /// a reply at an unknown time after its limit.
    pub(crate) fn is_pending(&self, moment: Moment) -> bool {
        let is_open = match &self.replied {
            Some((at, _)) => at.index > moment.index,
            None => moment.at < self.waits_until,
        };
        self.sent.index < moment.index && is_open
    }
}

impl Reply {
    /// Returns the result of one operation of the call. A call can have two: it can
    /// settle and claim.
    pub(crate) fn of(&self, operation: Operation) -> Option<Result<(), Refusal>> {
        fn plain<T>(result: &Result<T, Refusal>) -> Result<(), Refusal> {
            result.as_ref().map(|_| ()).map_err(|refusal| *refusal)
        }
        match operation {
            Operation::Settle => self.settled.as_ref().map(plain),
            Operation::Claim => self.claimed.as_ref().map(plain),
            Operation::Extend => self.extended.as_ref().map(plain),
            Operation::Recover => self.recovered.as_ref().map(plain),
            Operation::ReleaseWorker => self.released.as_ref().map(plain),
            _ => self.other,
        }
    }
}

impl Held {
    /// When the handler's future ended.
    pub(crate) fn stopped(&self) -> Option<Moment> {
        self.ended.as_ref().map(|(at, _)| *at).or(self.dropped)
    }

    pub(crate) fn is_running(&self, moment: Moment) -> bool {
        let is_started = self.started.iter().any(|one| one.index <= moment.index);
        is_started && self.stopped().is_none_or(|one| one.index > moment.index)
    }
}
