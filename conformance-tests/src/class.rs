//! What a backend promises by the classes and limits that it declares. Said here, and
//! nowhere else: cases, acts and the model ask.

use std::time::Duration;

use queue_core::{
    Capabilities, Capability, LeaseScope, NewJob, Order, Priority, RecoveryBound,
};

use crate::turn::{Moment, Ready, Turn};

/// The classes of a backend.
#[derive(Debug, Clone)]
pub(crate) struct Class {
    can: Capabilities,
}

impl Class {
    pub(crate) fn of(can: &Capabilities) -> Self {
        Self { can: can.clone() }
    }

    /// Whether `one` is surely served before `other` (R13, R15).
    pub(crate) fn is_first(&self, one: &Ready, other: &Ready) -> bool {
        match self.can.order {
            Order::Fifo if one.priority == other.priority => {
                one.turn.is_before(&other.turn)
            }
            Order::Fifo => one.priority > other.priority,
            Order::Rotating => self.is_first_in_ring(one, other),
            _ => false,
        }
    }

    /// Upper levels are pushed to where the ring is read, so that the last is first;
    /// what comes back to them may be anywhere.
    fn is_first_in_ring(&self, one: &Ready, other: &Ready) -> bool {
        let is_upper = |job: &Ready| job.priority > *self.can.priorities.start();
        match (is_upper(one), is_upper(other)) {
            (false, false) => one.turn.is_before(&other.turn),
            (false, true) => false,
            (true, false) => one.turn.is_fresh(),
            (true, true) if !(one.turn.is_fresh() && other.turn.is_fresh()) => false,
            (true, true) if one.priority == other.priority => {
                other.turn.is_before(&one.turn)
            }
            (true, true) => one.priority > other.priority,
        }
    }

    /// The place of a job that was leased by that claim, as that of its deliveries,
    /// until then, and came back.
    pub(crate) fn back(
        &self,
        (claim, index): Moment,
        until: u64,
        back: Moment,
    ) -> Turn {
        match self.can.order {
            Order::Rotating => {
                Turn::Back { from: (claim, 0), to: (back.0, usize::MAX), due: None }
            }
            _ => Turn::Front { back, claim, index, until },
        }
    }

    /// How many claims in a row may find less than they ask for before one finds a
    /// job that is ready, where so many are unfinished (R9).
    pub(crate) fn patience(&self, unfinished: u64) -> u64 {
        match self.can.recovery {
            RecoveryBound::OneTurn => unfinished,
            _ => 0,
        }
    }

    /// Whether a claim may take a job over whose lease has ended, with no recovery
    /// before it.
    pub(crate) fn claims_take_over(&self) -> bool {
        self.can.recovery == RecoveryBound::OneTurn
    }

    /// Whether all jobs of a worker live by its heartbeat, and what a heartbeat does
    /// not name is given back.
    pub(crate) fn shares_heartbeat(&self) -> bool {
        self.can.lease_scope == LeaseScope::Worker
    }

    /// The levels that are told apart, the least urgent first.
    pub(crate) fn levels(&self) -> impl Iterator<Item = Priority> {
        let all = (0..=Priority::HIGHEST.level()).filter_map(Priority::new);
        all.filter(|level| self.can.priorities.contains(level))
    }

    pub(crate) fn most_urgent(&self) -> Priority {
        *self.can.priorities.end()
    }

    pub(crate) fn least_urgent(&self) -> Priority {
        *self.can.priorities.start()
    }

    /// Whether it takes the job with all that is asked for.
    pub(crate) fn takes(&self, job: &NewJob) -> bool {
        self.can.check_push(std::slice::from_ref(job), false).is_ok()
    }

    /// The job without what is not claimed, of the nearest level that is told apart.
    pub(crate) fn fit(&self, mut job: NewJob) -> NewJob {
        let lacks = |option| !self.can.claims(option);
        if lacks(Capability::ClientIds) {
            job.id = None;
        }
        if lacks(Capability::Delay) {
            job.delay = Duration::ZERO;
        }
        if lacks(Capability::Expiry) {
            job.expires_in = None;
        }
        if lacks(Capability::Unique) {
            job.unique = None;
        }
        if self.shares_heartbeat() {
            job.lease = None;
        }
        job.priority = job.priority.clamp(self.least_urgent(), self.most_urgent());
        job
    }
}
