//! The promises of a backend that follow from the classes and limits that it declares.
//! They are defined only here: the test cases, the fault sweeps and the reference model
//! all use these functions.

use std::time::Duration;

use relq_core::{
    NewJob, Priority,
    capabilities::{Capabilities, Capability, LeaseScope, Order, RecoveryBound},
};

use crate::spec::ready_order::{Moment, Ready, ReadyPosition};

/// The capabilities that a backend declares, with a method for each promise that follows
/// from them.
#[derive(Debug, Clone)]
pub(crate) struct Class {
    can: Capabilities,
}

impl Class {
    pub(crate) fn of(can: &Capabilities) -> Self {
        Self { can: can.clone() }
    }

    /// Whether the ready job `one` is certainly delivered before the ready job `other`
    /// (R13, R15, B4).
    pub(crate) fn is_first(&self, one: &Ready, other: &Ready) -> bool {
        if self.can.order == Order::ByPart {
            return false;
        }
        if let Some(is_first) = one.is_first_by_batch(other) {
            return is_first;
        }
        match self.can.order {
            Order::Fifo if one.priority == other.priority => {
                one.position.is_before(&other.position)
            }
            Order::Fifo => one.priority > other.priority,
            Order::Rotating => self.is_first_in_ring(one, other),
            _ => false,
        }
    }

    /// Whether `one` comes before `other` on the circular backend, whose list is a
    /// ring. A push adds jobs above the lowest priority at the end from which claims
    /// read, so the last of them comes first. A job that returned may be anywhere.
    fn is_first_in_ring(&self, one: &Ready, other: &Ready) -> bool {
        let is_upper = |job: &Ready| job.priority > *self.can.priorities.start();
        match (is_upper(one), is_upper(other)) {
            (false, false) => one.position.is_before(&other.position),
            (false, true) => false,
            (true, false) => one.position.is_fresh(),
            (true, true) if !(one.position.is_fresh() && other.position.is_fresh()) => {
                false
            }
            (true, true) if one.priority == other.priority => {
                other.position.is_before(&one.position)
            }
            (true, true) => one.priority > other.priority,
        }
    }

    /// Returns the position of a job that became ready again at the moment `back`. The
    /// position depends on the claim that leased the job, on the index of the job in
    /// that claim, and on the end of its lease.
    pub(crate) fn back(
        &self,
        (claim, index): Moment,
        until: u64,
        back: Moment,
    ) -> ReadyPosition {
        match self.can.order {
            Order::Rotating => ReadyPosition::Back {
                from: (claim, 0),
                to: (back.0, usize::MAX),
                due: None,
            },
            _ => ReadyPosition::Front { back, claim, index, until },
        }
    }

    /// Returns how many consecutive claims may return fewer jobs than they ask for
    /// although a job is ready, when the queue has `unfinished` jobs (R9). The number
    /// is zero on most backends.
    pub(crate) fn patience(&self, unfinished: u64) -> u64 {
        match self.can.recovery {
            RecoveryBound::OneTurn => unfinished,
            _ => 0,
        }
    }

    /// Whether a claim may lease a job whose lease has expired before any recovery ran.
    pub(crate) fn claims_take_over(&self) -> bool {
        self.can.recovery == RecoveryBound::OneTurn
    }

    /// Whether one heartbeat extends all leases of a worker, and a job that the
    /// heartbeat does not name is given back.
    pub(crate) fn shares_heartbeat(&self) -> bool {
        self.can.lease_scope == LeaseScope::Worker
    }

    /// Whether a claim that waits may move a job to its worker before it leases the job.
    /// If the worker dies in between, the job counts as leased until the worker's session
    /// ends, which it may have done already. Then the job goes back, and no attempt is
    /// counted.
    pub(crate) fn moves_before_leasing(&self) -> bool {
        self.shares_heartbeat() && self.can.supports(Capability::BlockingWait)
    }

    /// The priorities that the backend distinguishes, the lowest first.
    pub(crate) fn levels(&self) -> impl Iterator<Item = Priority> {
        let all = (0..=Priority::HIGHEST.level()).filter_map(Priority::new);
        all.filter(|level| self.can.priorities.contains(level))
    }

    /// Whether the backend has batches.
    pub(crate) fn has_batches(&self) -> bool {
        self.can.supports(Capability::Batches)
    }

    /// Whether the backend has schedules.
    pub(crate) fn has_schedules(&self) -> bool {
        self.can.supports(Capability::Schedules)
    }

    /// Whether the backend finds jobs by their ids, runs them now and lists workers.
    pub(crate) fn is_inspected(&self) -> bool {
        self.can.supports(Capability::Inspect)
    }

    /// Whether the backend restores jobs.
    pub(crate) fn restores(&self) -> bool {
        self.can.supports(Capability::Restore)
    }

    /// Whether the backend keeps results of jobs.
    pub(crate) fn has_results(&self) -> bool {
        self.can.supports(Capability::Results)
    }

    pub(crate) fn most_urgent(&self) -> Priority {
        *self.can.priorities.end()
    }

    pub(crate) fn least_urgent(&self) -> Priority {
        *self.can.priorities.start()
    }

    /// Whether the backend accepts the job with all of its options.
    pub(crate) fn takes(&self, job: &NewJob) -> bool {
        self.can.check_push(std::slice::from_ref(job), false).is_ok()
    }

    /// The job without the options that the backend does not support, and with the
    /// nearest priority that it distinguishes.
    pub(crate) fn fit(&self, mut job: NewJob) -> NewJob {
        let lacks = |option| !self.can.supports(option);
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
        if lacks(Capability::Results) {
            job.keep_result = None;
        }
        if lacks(Capability::Followers) {
            job.after = None;
        }
        if self.shares_heartbeat() {
            job.lease = None;
        }
        job.priority = job.priority.clamp(self.least_urgent(), self.most_urgent());
        job
    }
}

/// The class of a backend for the suite's own tests. The backend supports every option,
/// apart from those that `change` removes.
#[cfg(test)]
pub(crate) fn declared(change: impl FnOnce(&mut Capabilities)) -> Class {
    let mut can = everything();
    change(&mut can);
    Class::of(&can)
}

/// The capabilities of a backend that supports every option.
#[cfg(test)]
pub(crate) fn everything() -> Capabilities {
    use std::{borrow::Cow, num::NonZeroU32};

    use relq_core::capabilities::Limits;

    Capabilities {
        backend: "declared",
        supported: Cow::Borrowed(&[
            Capability::ClientIds,
            Capability::PushTokens,
            Capability::Delay,
            Capability::Priority,
            Capability::Unique,
            Capability::Expiry,
        ]),
        priorities: Priority::LOWEST..=Priority::HIGHEST,
        lateness: Duration::ZERO,
        order: Order::Fifo,
        lease_scope: LeaseScope::Job,
        recovery: RecoveryBound::LeaseAndReaper,
        limits: Limits {
            max_payload: 1000,
            max_headers: 1000,
            max_jobs_per_call: NonZeroU32::new(100).expect("not zero"),
            max_bytes_per_push: 100_000,
        },
    }
}

#[cfg(test)]
mod tests {
    use std::borrow::Cow;

    use relq_core::{JobId, unique::UniqueKey};

    use super::*;

    #[test]
    fn undeclared_options_are_left_out() {
        let class = declared(|can| {
            can.supported = Cow::Borrowed(&[Capability::Unique]);
            can.priorities = Priority::NORMAL..=Priority::NORMAL;
            can.lease_scope = LeaseScope::Worker;
        });
        let key = UniqueKey::new("k").unwrap();
        let job = NewJob::new("job")
            .id(JobId::new("mine").unwrap())
            .delay(Duration::from_secs(1))
            .expires_in(Duration::from_secs(1))
            .lease(Duration::from_secs(1))
            .priority(Priority::HIGHEST)
            .unique(key.clone());
        assert!(!class.takes(&job));

        let fitted = class.fit(job);

        assert!(class.takes(&fitted));
        assert_eq!(fitted, NewJob::new("job").unique(key));
    }

    #[test]
    fn a_ring_has_patience_for_a_turn() {
        let ring = declared(|can| can.recovery = RecoveryBound::OneTurn);

        assert_eq!(ring.patience(7), 7);
        assert_eq!(declared(|_| {}).patience(7), 0);
    }
}
