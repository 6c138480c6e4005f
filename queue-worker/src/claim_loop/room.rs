//! How many jobs a claim loop may claim now.

use std::num::NonZeroU32;

use super::{ClaimLoop, ClaimPhase};
use crate::slot_pool::{Demand, HELD_PER_SLOT};

impl ClaimLoop {
    /// How many jobs may be claimed now. Each claimed job has a free slot before the
    /// claim, so that no lease runs while its job waits for a slot, unless the worker was
    /// asked to [prefetch](super::prefetch).
    pub(super) fn room(&mut self) -> Option<NonZeroU32> {
        let is_pooled = self.slots.are_pooled();
        let is_away = is_pooled && self.is_away();
        let is_served = !(is_away || is_pooled && self.is_idle);
        let free = self.slots.reserve(Demand {
            wanted: if is_served && self.may_claim() { self.wanted() } else { 0 },
            reserved: self.calls.reserved(),
            unsettled: if is_away { 0 } else { self.unsettled() },
            is_served,
            ..Demand::default()
        });
        let free = u32::try_from(free).unwrap_or(u32::MAX);
        NonZeroU32::new(free.min(self.calls.max_jobs_per_call().get()))
    }

    /// Whether a claim may be sent now, if there is a slot.
    pub(super) fn may_claim(&self) -> bool {
        let is_held_up = self.calls.is_waiting() || self.claiming.is_pausing();
        self.phase != ClaimPhase::Stopping && !is_held_up && !self.cannot_settle()
    }

    /// Whether the store fails, or does not reply in time. Then other queues of the
    /// worker use the slots.
    fn is_away(&self) -> bool {
        self.claiming.is_failing()
            || self.cannot_settle()
            || self.calls.is_any_overdue()
    }

    /// How many jobs the queue would claim in its next call if there were enough free
    /// slots.
    fn wanted(&self) -> usize {
        let most = self.slots.capacity().saturating_add(self.ahead());
        let most = most.min(self.claim_size.limit());
        let free = if self.settling.needs_probe() {
            most.min(1).saturating_sub(self.probes())
        } else {
            most.saturating_sub(self.slots.held() + self.calls.asked())
        };
        let of_one_call = self.calls.max_jobs_per_call().get() as usize;
        free.min(self.room_beside_unsettled()).min(of_one_call)
    }

    /// How many jobs have a settlement that is yet to show whether the store accepts
    /// settlements: the jobs that the worker runs or asks for, and those whose settlement
    /// has no reply yet and has not failed.
    fn probes(&self) -> usize {
        let unsettled = self.settling.fresh() + self.calls.unsettled();
        self.slots.held() + self.calls.asked() + unsettled
    }

    /// How many jobs the worker may claim so that it holds at most [`HELD_PER_SLOT`] jobs
    /// for each slot. A job counts until the store has confirmed its settlement.
    ///
    /// A claim may be faster than a settlement, for example while a settlement waits for
    /// replicas. All jobs that are not settled run again if the worker dies.
    fn room_beside_unsettled(&self) -> usize {
        let held = self.slots.held() + self.calls.asked() + self.unsettled();
        self.slots.most_held().saturating_mul(HELD_PER_SLOT).saturating_sub(held)
    }

    fn unsettled(&self) -> usize {
        self.settling.unsettled() + self.calls.unsettled()
    }

    /// Whether settlements wait because the store refuses them. Then the worker claims
    /// no more jobs, because these would only add settlements. From a queue of several
    /// parts it claims one job at a time, whose settlement shows whether other parts work.
    fn cannot_settle(&self) -> bool {
        let is_waiting = !self.settling.is_empty() || self.calls.is_settling();
        is_waiting && self.settling.refuses_all() && !self.settling.needs_probe()
    }
}

#[cfg(test)]
mod tests {
    use std::{sync::Arc, time::Duration};

    use relq_core::{
        Disposition, capabilities::Order, environment::Environment, error::Operation,
    };

    use super::*;
    use crate::{
        JobContext,
        claim_loop::tests::{
            claim_loop, claim_loop_of, job, send_settlement, settings, sharing,
            unavailable, wanted,
        },
        context::LeaseEnd,
        lease_clock::Moment,
        observers::Observers,
        settling::Settling,
    };
    fn room(claim_loop: &mut ClaimLoop) -> u32 {
        claim_loop.room().map_or(0, NonZeroU32::get)
    }

    /// Sends a settlement, which fails. Returns its job.
    fn fail_a_settlement(claim_loop: &mut ClaimLoop) -> JobContext {
        let job = job("fails");
        claim_loop.settle(job.clone(), Disposition::Done);
        let call = claim_loop.settling.next_settle_call(1).unwrap();
        let failed = Err(unavailable(Operation::Settle));
        claim_loop.settling.answered(call, failed, Duration::ZERO).unwrap();
        job
    }

    /// All jobs that are not settled run again if the worker dies, so it holds at most two
    /// for each slot.
    #[test]
    fn jobs_that_are_not_settled_take_up_room() {
        assert_eq!(room(&mut claim_loop()), 16, "a job for each slot");
        let mut claim_loop = claim_loop_of(settings(1), None);

        send_settlement(&mut claim_loop);
        assert_eq!(room(&mut claim_loop), 1, "with one unsettled job");
        claim_loop.settle(job("unsent"), Disposition::Done);

        assert_eq!(room(&mut claim_loop), 0, "with two");
    }

    /// The same holds for the queues of a worker together.
    #[test]
    fn unsettled_jobs_of_a_queue_keep_the_slots_from_the_others() {
        let (mut claim_loop, other) = sharing(1);
        other.report(wanted(0));
        send_settlement(&mut claim_loop);
        claim_loop.settle(job("unsent"), Disposition::Done);
        claim_loop.room();
        assert_eq!(other.report(wanted(1)), 0, "two jobs are not settled");

        claim_loop.claiming.failed(&unavailable(Operation::Claim));
        claim_loop.room();

        assert_eq!(other.report(wanted(1)), 1, "a store that is away");
    }

    /// While the store refuses settlements, the job of a further claim could not be settled
    /// either. So the worker claims none.
    #[tokio::test]
    async fn a_worker_claims_nothing_while_its_settlements_are_refused() {
        let mut claim_loop = claim_loop_of(settings(1), None);
        fail_a_settlement(&mut claim_loop);
        assert!(!claim_loop.may_claim(), "the settlement waits");

        claim_loop.settling.backoff.pause_over().await;
        let again = claim_loop.settling.next_settle_call(1).unwrap();
        claim_loop.calls.settle(again, claim_loop.now());

        assert!(!claim_loop.may_claim(), "the settlement is sent again");
    }

    /// When the lease of a job has ended, its settlement is not repeated. So no call would
    /// ever show that the store takes settlements again.
    #[tokio::test]
    async fn a_worker_claims_again_when_nothing_is_left_to_settle() {
        let mut claim_loop = claim_loop_of(settings(1), None);
        fail_a_settlement(&mut claim_loop).end_lease(LeaseEnd::Lost);
        claim_loop.settling.backoff.pause_over().await;
        assert!(claim_loop.settling.next_settle_call(1).is_none(), "it is repeated");

        assert!(claim_loop.may_claim(), "the worker never claims again");
    }

    /// The other queues of the worker use the slots while the store of one fails, refuses
    /// settlements or does not reply.
    #[test]
    fn a_queue_is_away_for_each_of_three_reasons() {
        let (mut fails, _other) = sharing(1);
        assert!(!fails.is_away(), "its store works");
        fails.claiming.failed(&unavailable(Operation::Claim));
        let (mut refuses, _other) = sharing(1);
        fail_a_settlement(&mut refuses);
        let (mut silent, _other) = sharing(1);
        silent.calls.claim(silent.ask(NonZeroU32::MIN), 1, Moment::default());
        silent.calls.notice_overdue(silent.now());

        assert!(fails.is_away(), "claims fail");
        assert!(refuses.is_away(), "settlements are refused");
        assert!(silent.is_away(), "a call is overdue");
    }

    /// While some parts of a queue are down, each job that may show whether others work
    /// counts once, wherever it is.
    #[test]
    fn jobs_that_show_whether_parts_work_are_counted() {
        let mut claim_loop = claim_loop_of(settings(16), None);
        let held = Arc::clone(&claim_loop.held);
        let settling =
            Settling::new(held, Observers::default(), Environment::default());
        claim_loop.settling = settling.of(Order::ByPart);
        send_settlement(&mut claim_loop);
        claim_loop.settle(job("fresh"), Disposition::Done);
        let two = NonZeroU32::new(2).unwrap();
        claim_loop.calls.claim(claim_loop.ask(two), 2, claim_loop.now());

        assert_eq!(claim_loop.probes(), 4, "two are asked for, two are unsettled");
    }
}
