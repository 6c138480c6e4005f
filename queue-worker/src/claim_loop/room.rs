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

    /// How many jobs will show whether the store takes settlements: those that the worker
    /// runs or asks for, and those whose settlement has no reply yet and has not failed.
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
