//! Tests that the reference model checks exactly what each class promises, and no more.

use std::{borrow::Cow, num::NonZeroU32};

use relq_core::{
    Delivery, JobId, NewJob, Priority, Receipt, Stats,
    batch::{BatchPriority, Created},
    capabilities::{Capabilities, Capability, LeaseScope, Order, RecoveryBound},
    outcome::{Extended, Pushed, Recovered, Settled},
};

use super::{
    claiming::Asked,
    operation::DispositionKind,
    pushing::PushCall,
    reference::{CheckResult, Reference},
    sequence::Steps,
    settling::SentSettlement,
};
use crate::spec::class::declared;

const LEASE: u64 = 1000;

/// A reference model with some pushed jobs, and operations on it.
struct Runner {
    reference: Reference,
    leases: usize,
}

impl Runner {
    /// A model with three jobs.
    fn of(change: impl FnOnce(&mut Capabilities)) -> Self {
        Self::with(&["a", "b", "c"], change)
    }

    fn with(jobs: &[&'static str], change: impl FnOnce(&mut Capabilities)) -> Self {
        let mut runner = Self {
            reference: Reference::new(declared(change), Steps::Usual),
            leases: 0,
        };
        runner.push(jobs);
        runner
    }

    fn push(&mut self, payloads: &[&'static str]) {
        self.add(None, payloads);
    }

    fn add(&mut self, batch: Option<u8>, payloads: &[&'static str]) {
        let jobs: Vec<_> = payloads.iter().map(|one| NewJob::new(*one)).collect();
        let ids = payloads.iter().map(|one| JobId::new(*one).unwrap());
        let stored: Vec<_> = ids.map(Pushed::Stored).collect();
        let call = PushCall { batch, ..PushCall::of(jobs) };
        self.reference.pushed(&call, None, &stored).unwrap();
        self.reference.conclude().unwrap();
    }

    /// Creates a batch with a limit of one piece.
    fn create(&mut self, number: u8, priority: BatchPriority) {
        let completion = NewJob::new(format!("complete {number}"));
        let limit = NonZeroU32::new(1);
        let new = self.reference.new_batch((priority, limit), &completion);
        self.reference.created(number, new, Created::Stored).unwrap();
        self.reference.conclude().unwrap();
    }

    /// Records a claim of `max` jobs that returns these jobs, each with that attempt.
    fn claim(
        &mut self,
        max: usize,
        payloads: &[&'static str],
        attempt: u32,
    ) -> CheckResult {
        let mut deliveries = Vec::new();
        for payload in payloads {
            self.leases += 1;
            let (id, token) = (JobId::new(*payload).unwrap(), self.leases.to_string());
            let lease = std::time::Duration::from_millis(LEASE);
            let receipt = Receipt::new(id, attempt, token);
            let mut delivery = Delivery::new(receipt, *payload, lease);
            let job = self.reference.job_of(&delivery.payload).unwrap();
            delivery.batch = self.reference.jobs[job].batch.map(Reference::batch_id);
            deliveries.push(delivery);
        }
        let asked = Asked { run: 1, max, lease: LEASE, waits: false };
        self.reference.claimed(asked, &deliveries)?;
        self.reference.conclude()
    }

    fn give_back(&mut self, observed: usize) {
        let sent = [SentSettlement {
            observed,
            disposition: DispositionKind::GiveBack,
            after: 0,
        }];
        self.reference.settled(&sent, &[Settled::Applied]).unwrap();
        self.reference.conclude().unwrap();
    }

    /// Records a claim of another worker whose reply was lost, and reads the stats: the
    /// job is leased.
    fn lose_claim(&mut self, waits: bool, overdue: u64) -> CheckResult {
        let asked = Asked { run: 2, max: 1, lease: LEASE, waits };
        self.reference.maybe_claimed(asked);
        self.reference.conclude()?;
        let mut stats = Stats::new();
        (stats.leased, stats.overdue) = (1, overdue);
        self.reference.counted(&stats)
    }

    fn outlast_leases(&mut self) {
        self.reference.now += LEASE;
        self.reference.conclude().unwrap();
    }

    fn recover(&mut self, requeued: u32) -> CheckResult {
        let answer = Recovered { requeued, ..Recovered::default() };
        self.reference.recovered(100, &answer)?;
        self.reference.conclude()
    }
}

fn of(order: Order) -> Runner {
    Runner::of(|can| {
        can.order = order;
        can.priorities = Priority::NORMAL..=Priority::HIGHEST;
    })
}

#[test]
fn the_oldest_is_first_where_an_order_is_declared() {
    assert!(of(Order::Fifo).claim(1, &["b"], 1).is_err());
    assert!(of(Order::Rotating).claim(1, &["b"], 1).is_err());
    assert!(of(Order::Fifo).claim(2, &["b", "a"], 1).is_err());
    assert!(of(Order::Unordered).claim(2, &["c", "a"], 1).is_ok());
}

#[test]
fn without_an_order_each_is_still_delivered_once() {
    let mut runner = of(Order::Unordered);
    runner.claim(1, &["b"], 1).unwrap();

    assert!(runner.claim(1, &["b"], 2).is_err());
    assert!(of(Order::Unordered).claim(5, &["a", "b"], 1).is_err(), "c is left");
}

/// Gives the job `a` back on a backend with that order, and lets the next claim return
/// the job `next`. Returns whether the reference model accepts that claim.
fn after_a_is_back(order: Order, next: &'static str) -> CheckResult {
    let mut runner = of(order);
    runner.claim(1, &["a"], 1).unwrap();
    runner.give_back(0);
    runner.push(&["d"]);
    runner.claim(1, &[next], 1)
}

#[test]
fn a_returned_job_is_first_or_waits_its_turn() {
    assert!(after_a_is_back(Order::Fifo, "a").is_ok());
    assert!(after_a_is_back(Order::Fifo, "b").is_err());
    assert!(after_a_is_back(Order::Rotating, "b").is_ok());
    assert!(after_a_is_back(Order::Rotating, "a").is_err());
    assert!(after_a_is_back(Order::Unordered, "d").is_ok());
}

#[test]
fn a_job_returned_to_a_ring_waits_for_one_turn_only() {
    let mut runner = of(Order::Rotating);
    runner.claim(1, &["a"], 1).unwrap();
    runner.give_back(0);
    runner.push(&["d"]);
    runner.claim(2, &["b", "c"], 1).unwrap();

    assert!(runner.claim(1, &["d"], 1).is_err(), "a came back before d was pushed");
}

#[test]
fn a_recovered_job_waits_its_turn_in_a_ring() {
    let mut runner = of(Order::Rotating);
    runner.claim(1, &["a"], 1).unwrap();
    runner.outlast_leases();
    runner.recover(1).unwrap();

    assert!(runner.claim(1, &["b"], 1).is_ok());
    assert!(runner.claim(2, &["c", "a"], 2).is_err(), "c was delivered once only");
}

fn ring() -> Runner {
    Runner::of(|can| can.recovery = RecoveryBound::OneTurn)
}

#[test]
fn a_ring_may_find_nothing_for_one_turn() {
    let mut strict = of(Order::Fifo);
    assert!(strict.claim(1, &[], 1).is_err());

    let mut ring = ring();
    for _ in 0..3 {
        ring.claim(1, &[], 1).unwrap();
    }
    assert!(ring.claim(1, &[], 1).is_err(), "three jobs are a turn of three");
}

#[test]
fn a_claim_of_a_ring_takes_over_what_is_overdue() {
    let takes_over = |mut runner: Runner| {
        runner.claim(3, &["a", "b", "c"], 1).unwrap();
        runner.outlast_leases();
        runner.claim(1, &["a"], 2)
    };

    assert!(takes_over(ring()).is_ok());
    assert!(takes_over(of(Order::Fifo)).is_err(), "nobody recovered it");
}

#[test]
fn nobody_takes_over_a_lease_that_runs() {
    let mut ring = ring();
    ring.claim(3, &["a", "b", "c"], 1).unwrap();

    assert!(ring.claim(1, &["a"], 2).is_err());
}

/// Makes a model in which a worker has two leased jobs. After half of the lease, its
/// heartbeat names only one of them.
fn half_named(scope: LeaseScope) -> Runner {
    let mut runner = Runner::of(|can| can.lease_scope = scope);
    runner.claim(2, &["a", "b"], 1).unwrap();
    runner.reference.now += LEASE / 2;
    let until = runner.reference.now + LEASE;
    let observed_answer = [(
        Extended::Until(relq_core::environment::Timestamp::from_unix_ms(0)),
        Some(until),
    )];
    runner.reference.extended(1, &[0], until, &observed_answer).unwrap();
    runner.reference.conclude().unwrap();
    runner
}

#[test]
fn a_job_that_a_heartbeat_does_not_name_is_given_back_or_expires() {
    assert!(half_named(LeaseScope::Worker).claim(5, &["b", "c"], 1).is_ok());
    assert!(half_named(LeaseScope::Worker).claim(5, &["b", "c"], 2).is_err());
    assert!(half_named(LeaseScope::Job).claim(5, &["b", "c"], 1).is_err());
    for scope in [LeaseScope::Job, LeaseScope::Worker] {
        let mut runner = half_named(scope);
        runner.reference.now += LEASE / 2;
        assert!(runner.recover(1).is_ok(), "b's lease was not extended");
    }
}

/// Makes a model with a plain job, two pieces of a batch, and one piece of a more
/// urgent batch. Each batch has one slot.
fn with_batches() -> Runner {
    let mut runner = of(Order::Fifo);
    runner.claim(2, &["a", "b"], 1).unwrap();
    runner.create(1, BatchPriority::NORMAL);
    runner.create(2, BatchPriority::HIGHEST);
    runner.add(Some(1), &["d", "e"]);
    runner.add(Some(2), &["f"]);
    runner
}

/// B4: jobs of no batch are served first, and then the pieces of the most urgent batch.
#[test]
fn batches_are_served_by_their_priority() {
    assert!(with_batches().claim(2, &["c", "f"], 1).is_ok());
    assert!(with_batches().claim(1, &["f"], 1).unwrap_err().contains("B4"));
    assert!(with_batches().claim(2, &["c", "d"], 1).unwrap_err().contains("B4"));
}

/// B3: a claim may not take a piece of a batch without a free slot, and may not leave a
/// ready piece of a batch that has one.
#[test]
fn the_slots_of_a_batch_are_used_and_not_exceeded() {
    assert!(with_batches().claim(9, &["c", "f", "d"], 1).is_ok());
    assert!(
        with_batches().claim(9, &["c", "f", "d", "e"], 1).unwrap_err().contains("B3")
    );
    assert!(with_batches().claim(9, &["c", "f"], 1).unwrap_err().contains("DRAIN"));
}

/// R8: a settlement call whose reply was lost settled all of its jobs or none, so one
/// job shows what happened to the others.
#[test]
fn a_lost_settlement_is_whole() {
    let after_losing = |jobs: &[&'static str]| {
        let mut runner = Runner::of(|_| {});
        runner.claim(3, &["a", "b", "c"], 1).unwrap();
        let done = |observed| SentSettlement {
            observed,
            disposition: DispositionKind::Done,
            after: 0,
        };
        runner.reference.maybe_settled(&[done(0), done(1)]);
        runner.outlast_leases();
        runner.recover(u32::try_from(jobs.len()).unwrap()).unwrap();
        runner.claim(3, jobs, 2)
    };

    assert!(after_losing(&["a", "b", "c"]).is_ok());
    assert!(after_losing(&["c"]).is_ok());
    assert!(after_losing(&["a", "c"]).unwrap_err().contains("settled in part"));
}

/// R10: a claim does not extend the leases that its worker already has.
#[test]
fn a_claim_prolongs_nothing() {
    for scope in [LeaseScope::Job, LeaseScope::Worker] {
        let recovered = |requeued| {
            let mut runner = Runner::of(|can| can.lease_scope = scope);
            runner.claim(2, &["a", "b"], 1).unwrap();
            runner.reference.now += LEASE / 2;
            runner.claim(1, &["c"], 1).unwrap();
            runner.reference.now += LEASE / 2;
            runner.recover(requeued)
        };

        assert!(recovered(2).is_ok());
        assert!(recovered(0).is_err());
    }
}

/// Makes a model of a backend whose waiting claims the server serves, with one job.
fn with_waiting(scope: LeaseScope) -> Runner {
    Runner::with(&["a"], |can| {
        can.supported = Cow::Borrowed(&[Capability::BlockingWait]);
        can.lease_scope = scope;
    })
}

/// R9: where a worker's leases share a session, a claim that waits may move a job before
/// it leases it. If the worker is dead and its session has ended, the job is overdue at
/// once, and no attempt is counted.
#[test]
fn a_moved_job_goes_back_before_a_lease_would_end() {
    let mut runner = with_waiting(LeaseScope::Worker);
    runner.lose_claim(true, 1).unwrap();
    runner.recover(1).unwrap();

    assert!(runner.claim(1, &["a"], 1).is_ok());
}

/// R11: a job that is overdue before a lease would have ended was not delivered, so a
/// recovery must not count an attempt.
#[test]
fn a_moved_job_counts_no_attempt() {
    let mut runner = with_waiting(LeaseScope::Worker);
    runner.lose_claim(true, 1).unwrap();
    runner.recover(1).unwrap();

    assert!(runner.claim(1, &["a"], 2).is_err());
}

/// R11: a recovery counts no attempt of a moved job either if the session of its worker
/// ends only later.
#[test]
fn a_moved_job_may_wait_for_the_end_of_its_session() {
    let mut runner = with_waiting(LeaseScope::Worker);
    runner.lose_claim(true, 0).unwrap();
    runner.recover(0).unwrap();
    runner.outlast_leases();
    runner.recover(1).unwrap();

    assert!(runner.claim(1, &["a"], 1).is_ok());
}

/// R10: a claim that waits may go on after it lost a reply, and return no job. The job of
/// that reply comes back when its lease ends, and the attempt counts. Without a wait, a
/// claim that lost its reply does not return.
#[test]
fn a_claim_that_waits_may_go_on_after_a_lost_reply() {
    let after_fault = |waits| {
        let mut runner = with_waiting(LeaseScope::Job);
        let asked = Asked { run: 2, max: 1, lease: LEASE, waits };
        runner.reference.claimed_despite_fault(asked, &[]).map(|()| runner)
    };
    assert!(after_fault(false).is_err());

    let mut runner = after_fault(true).unwrap();
    assert!(runner.claim(1, &["a"], 1).is_err(), "it is leased");

    let mut runner = after_fault(true).unwrap();
    runner.outlast_leases();
    runner.recover(1).unwrap();
    assert!(runner.claim(1, &["a"], 2).is_ok());
}

/// R6, R11: only a claim that waits, on a backend of that class, may leave a job without
/// a lease.
#[test]
fn no_other_lost_claim_leaves_a_job_without_a_lease() {
    for (scope, waits) in [(LeaseScope::Worker, false), (LeaseScope::Job, true)] {
        assert!(with_waiting(scope).lose_claim(waits, 1).is_err(), "{scope:?}");

        let mut runner = with_waiting(scope);
        runner.lose_claim(waits, 0).unwrap();
        runner.outlast_leases();
        runner.recover(1).unwrap();
        assert!(runner.claim(1, &["a"], 1).is_err(), "{scope:?}");
    }
}

/// R1, R9: a job that a lost claim had moved to its worker is delivered again only after
/// a recovery. Once the worker's session has certainly ended, every recovery must make
/// the job ready.
#[test]
fn a_moved_job_is_neither_delivered_nor_lost() {
    let mut delivered = with_waiting(LeaseScope::Worker);
    delivered.lose_claim(true, 1).unwrap();
    assert!(delivered.claim(1, &["a"], 1).is_err(), "nobody recovered it");

    let mut left = with_waiting(LeaseScope::Worker);
    left.lose_claim(true, 0).unwrap();
    left.outlast_leases();
    assert!(left.recover(0).is_err());

    let mut lost = with_waiting(LeaseScope::Worker);
    lost.lose_claim(true, 1).unwrap();
    lost.recover(1).unwrap();
    assert!(lost.claim(1, &[], 1).is_err());
}

/// R23: after a lost claim the one job is ready or leased. Stats that count it in neither
/// state have lost it, and stats that count it in both have counted it twice.
#[test]
fn a_job_that_the_stats_count_nowhere_is_lost() {
    let counted = |ready, leased| {
        let mut runner = with_waiting(LeaseScope::Job);
        let asked = Asked { run: 2, max: 1, lease: LEASE, waits: false };
        runner.reference.maybe_claimed(asked);
        runner.reference.conclude().unwrap();
        let mut stats = Stats::new();
        (stats.ready, stats.leased) = (ready, leased);
        runner.reference.counted(&stats)
    };

    assert!(counted(1, 0).is_ok() && counted(0, 1).is_ok());
    assert!(
        counted(0, 0).unwrap_err().contains("ready or leased jobs in the stats: 0")
    );
    assert!(
        counted(1, 1).unwrap_err().contains("ready or leased jobs in the stats: 2")
    );
}

/// A claim that waits may return the job that an earlier, lost reply had moved to its
/// worker. A claim of another worker may not, and neither may one that does not wait.
#[test]
fn a_waiting_claim_returns_what_a_lost_reply_had_moved() {
    let claimed_by = |run, waits| {
        let mut runner = with_waiting(LeaseScope::Worker);
        runner.lose_claim(true, 1).unwrap();
        let receipt = Receipt::new(JobId::new("a").unwrap(), 1, "new");
        let lease = std::time::Duration::from_millis(LEASE);
        let asked = Asked { run, max: 1, lease: LEASE, waits };
        runner
            .reference
            .claimed_despite_fault(asked, &[Delivery::new(receipt, "a", lease)])
    };

    assert!(claimed_by(2, true).is_ok());
    assert!(claimed_by(2, false).is_err());
    assert!(claimed_by(3, true).is_err());
}
