//! The possible effects of a call whose reply was lost.

use relq_core::{JobId, WorkerId};

use super::Runner;
use crate::spec::{
    actors::Observed,
    batching::{BatchChange, PossibleBatch},
    claiming::Asked,
    pushing::PushCall,
    reference::{CheckResult, Knowledge},
    scheduling::TickOf,
    settling::SentSettlement,
};

/// A call whose reply was lost, with the data that the reference needs when it may have
/// happened.
#[derive(Debug, Clone)]
pub(in crate::spec) enum CallEffect {
    Push(PushCall),
    /// A push that was delayed, by the number of its call in the reference.
    LatePush(u32),
    CreateBatch(u8, PossibleBatch),
    Batch(u8, BatchChange),
    Claim(Asked),
    Settle(Vec<SentSettlement>),
    /// A heartbeat: the worker's run, the named receipts, and the lease in
    /// milliseconds.
    Extend(usize, Vec<usize>, u64),
    ReleaseWorker(usize),
    Recover,
    Cancel(JobId),
    Redrive(Option<usize>),
    PurgeDead,
    Purge,
    Steer(bool),
    RunNow(JobId),
    /// A report that a worker runs: its run and its id.
    ReportWorker(usize, WorkerId),
    PutSchedule(u8, u8),
    RemoveSchedule(u8),
    /// A report of progress: the receipt and the number of the value.
    Report(usize, u8),
    Tick(TickOf, PushCall),
    /// A tick that was delayed, with the number of its call in the reference.
    LateTick(TickOf, u32),
}

impl Runner {
    /// Records the possible effects, now or later, of a call whose reply was lost.
    pub(super) fn unanswered<T>(
        &mut self,
        observed_answer: &Observed<T>,
        effect: &CallEffect,
    ) -> CheckResult {
        if matches!(observed_answer, Observed::Lost | Observed::LostAndLate) {
            self.maybe(effect);
        }
        if matches!(observed_answer, Observed::Late | Observed::LostAndLate) {
            let late = match effect {
                CallEffect::Push(call) if matches!(observed_answer, Observed::Late) => {
                    CallEffect::LatePush(self.reference.push_is_late(call))
                }
                CallEffect::Push(..) => CallEffect::LatePush(self.reference.step),
                CallEffect::Tick(tick, push) => {
                    let call = match observed_answer {
                        Observed::Late => self.reference.tick_is_late(*tick, push),
                        _ => self.reference.lost_tick_is_late(),
                    };
                    CallEffect::LateTick(*tick, call)
                }
                other => other.clone(),
            };
            self.late.push(late);
        }
        Ok(())
    }

    pub(super) fn maybe(&mut self, effect: &CallEffect) {
        let reference = &mut self.reference;
        match effect {
            CallEffect::Push(call) => reference.maybe_pushed(call),
            CallEffect::LatePush(call) => reference.maybe_stored_now(*call),
            CallEffect::CreateBatch(number, new) => {
                reference.maybe_created(*number, *new);
            }
            CallEffect::Batch(number, change) => {
                reference.batch_changed(*number, *change, Knowledge::Maybe);
            }
            CallEffect::Claim(asked) => reference.maybe_claimed(*asked),
            CallEffect::Settle(sent) => reference.maybe_settled(sent),
            CallEffect::Extend(run, named, lease) => {
                let until = reference.now + lease;
                reference.maybe_extended(*run, named, until);
            }
            CallEffect::ReleaseWorker(run) => reference.maybe_left(*run),
            CallEffect::Recover => reference.maybe_recovered(),
            CallEffect::Cancel(id) => reference.maybe_cancelled(id),
            CallEffect::Redrive(which) => reference.maybe_redriven(*which),
            CallEffect::PurgeDead => reference.maybe_dead_purged(),
            CallEffect::Purge => reference.maybe_purged(),
            CallEffect::Steer(pauses) => reference.steered(*pauses, Knowledge::Maybe),
            CallEffect::RunNow(id) => reference.maybe_ran_now(id),
            CallEffect::ReportWorker(run, id) => {
                reference.reported_worker(*run, id, Knowledge::Maybe);
            }
            CallEffect::Report(observed, value) => {
                reference.maybe_reported(*observed, *value);
            }
            effect => self.maybe_scheduled(effect),
        }
    }

    fn maybe_scheduled(&mut self, effect: &CallEffect) {
        let reference = &mut self.reference;
        match effect {
            CallEffect::PutSchedule(number, definition) => {
                reference.maybe_put(*number, *definition);
            }
            CallEffect::RemoveSchedule(number) => reference.maybe_removed(*number),
            CallEffect::Tick(tick, push) => reference.maybe_ticked(*tick, push),
            CallEffect::LateTick(tick, call) => {
                reference.maybe_ticked_late(*tick, *call);
            }
            effect => unreachable!("{effect:?} is no call on a schedule"),
        }
    }
}
