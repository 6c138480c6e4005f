//! Every act, with the state before it, its promise, and the actors that may repeat it.

use relq_core::{WorkerId, capabilities::Capability};

use super::{
    BoxFuture,
    actors::{Survivors, VictimObserver},
    acts,
    scenes::{self, Scene},
    victim::Act,
};
use crate::Need;

/// The calls of other actors while the victim acts.
pub(crate) type Meanwhile =
    for<'a> fn(&'a Survivors, VictimObserver<'a>) -> BoxFuture<'a, ()>;

/// An act, the state before it, and its promise.
pub(crate) struct Scenario {
    pub(crate) name: &'static str,
    pub(crate) needs: &'static [Need],
    pub(crate) prepare: for<'a> fn(&'a Survivors, &'a WorkerId) -> BoxFuture<'a, Scene>,
    pub(crate) act: Act,
    pub(crate) meanwhile: Meanwhile,
    pub(crate) again: Again,
    /// Whether two runs send the same commands in the same order.
    pub(crate) is_steady: bool,
    /// Whether the act makes all its changes by receipts, which are refused once other
    /// actors have taken over (R7).
    pub(crate) is_by_receipt: bool,
    /// Whether no actor has written to the queue before (R25).
    pub(crate) is_new: bool,
    /// Whether the victim is a whole worker, whose process records the jobs that it
    /// runs.
    pub(crate) is_worker: bool,
}

/// Which actor may repeat an act if it is unknown whether the act was done.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// No actor: the act might be done twice (R4).
    Never,
    /// The victim, if it got an error that says that a retry is safe.
    AsTheVictim,
    /// Any actor, also after the victim's death.
    ByAnyone,
}

macro_rules! scenario {
    ($name:ident, $prepare:ident, $act:ident $(, $field:ident: $value:expr)*) => {
        Scenario {
            $($field: $value,)*
            ..Scenario {
                name: stringify!($name),
                needs: &[],
                prepare: |actors, victim| Box::pin(scenes::$prepare(actors, victim)),
                act: |victim| Box::pin(acts::$act(victim)),
                meanwhile: |_, _| Box::pin(async {}),
                again: Again::AsTheVictim,
                is_steady: true,
                is_by_receipt: false,
                is_new: false,
                is_worker: false,
            }
        }
    };
}

const BATCHES: &[Need] = &[Need::Option(Capability::Batches)];
const BATCH_TOKENS: &[Need] =
    &[Need::Option(Capability::Batches), Need::Option(Capability::PushTokens)];
const BATCH_IDS: &[Need] =
    &[Need::Option(Capability::Batches), Need::Option(Capability::ClientIds)];
const TOKENS: &[Need] = &[Need::Option(Capability::PushTokens)];
const DELAYS: &[Need] = &[Need::Option(Capability::Delay)];
const PRIORITIES: &[Need] = &[Need::Option(Capability::Priority)];
const WAITS: &[Need] = &[Need::Option(Capability::BlockingWait)];
const IDS: &[Need] = &[Need::Option(Capability::ClientIds)];
const KEYS: &[Need] = &[Need::Option(Capability::Unique)];
const DELAYED_IDS: &[Need] =
    &[Need::Option(Capability::ClientIds), Need::Option(Capability::Delay)];
const RANKED_IDS: &[Need] =
    &[Need::Option(Capability::ClientIds), Need::Option(Capability::Priority)];
const DELAYED_KEYS: &[Need] =
    &[Need::Option(Capability::Unique), Need::Option(Capability::Delay)];

pub(crate) const SCENARIOS: &[Scenario] = &[
    scenario!(push, nothing_then_a, push_one, again: Again::Never),
    scenario!(first_push, nothing_then_a, push_one, again: Again::Never, is_new: true),
    scenario!(first_push_with_options, nothing_then_options, push_options,
        again: Again::Never, is_new: true),
    scenario!(push_of_many, nothing_then_abc, push_many, again: Again::Never),
    scenario!(push_with_options, nothing_then_options, push_options, again: Again::Never),
    scenario!(push_with_a_token, nothing_then_abc, push_token,
        needs: TOKENS, again: Again::ByAnyone),
    scenario!(claim, three_ready, claim_two),
    scenario!(claim_of_other_priorities, ranked_ready, claim_two, needs: PRIORITIES),
    scenario!(claim_of_what_is_due, three_due, claim_two, needs: DELAYS),
    scenario!(claim_that_waits, nothing_then_pushed, claim_waiting,
        needs: WAITS, meanwhile: acts::push_once_held, is_steady: false),
    scenario!(claim_that_waits_in_vain, nothing_then_pushed, claim_in_vain,
        needs: WAITS, meanwhile: acts::push_after_a_while, is_steady: false),
    scenario!(settle_done, three_held, settle_done, is_by_receipt: true),
    scenario!(settle_each_disposition, five_held, settle_mixed, is_by_receipt: true),
    scenario!(settle_with_side_records, held_with_side_records, settle_done,
        needs: KEYS, is_by_receipt: true),
    scenario!(settle_and_claim, two_ready_one_held, settle_and_claim, is_by_receipt: true),
    scenario!(extend, held_unchanged, extend),
    scenario!(release_worker, held_unchanged, release_worker),
    scenario!(recover, three_overdue, recover),
    scenario!(recover_what_is_due, three_due, recover, needs: DELAYS),
    scenario!(redrive, three_dead, redrive),
    scenario!(purge_the_dead, three_dead_then_none, purge_dead),
    scenario!(purge, every_place_then_none, purge),
    scenario!(pause, three_ready, pause),
    scenario!(resume, three_paused, resume),
    scenario!(cancel_a_ready_job, ready_victim, cancel, needs: IDS),
    scenario!(cancel_a_scheduled_job, scheduled_victim, cancel, needs: DELAYED_IDS),
    scenario!(cancel_a_leased_job, leased_victim, cancel, needs: IDS),
    scenario!(cancel_a_ranked_job, ranked_victim, cancel, needs: RANKED_IDS),
    scenario!(look, held_unchanged, look),
    scenario!(redrive_by_id, two_dead, redrive_one, needs: IDS),
    scenario!(push_that_moves_another, one_to_move, push_that_moves,
        needs: DELAYED_KEYS),
    scenario!(extend_what_was_cancelled, cancelled_held, extend, needs: IDS),
    scenario!(recover_with_old_memories, old_memories, recover, needs: IDS),
    scenario!(peek_at_each_state, each_state, peek_at_each_state, needs: DELAYS),
    scenario!(submit_a_batch, nothing_then_a_batch, submit_batch,
        needs: BATCH_TOKENS, again: Again::ByAnyone),
    scenario!(add_pieces, open_batch, add_pieces,
        needs: BATCH_TOKENS, again: Again::ByAnyone),
    scenario!(seal_a_batch, batch_to_seal, seal_batch,
        needs: BATCHES),
    scenario!(seal_an_ended_batch, ended_batch_to_seal, seal_batch,
        needs: BATCHES),
    scenario!(claim_pieces, limited_batch, claim_two,
        needs: BATCHES),
    scenario!(settle_the_last_pieces, last_pieces_held, settle_done,
        needs: BATCHES, is_by_receipt: true),
    scenario!(settle_pieces_each_disposition, five_pieces_held, settle_mixed,
        needs: BATCHES, is_by_receipt: true),
    scenario!(complete_elsewhere, last_piece_held_of_elsewhere, settle_done,
        needs: BATCHES, is_by_receipt: true),
    scenario!(settle_and_claim_on_pieces, one_slot_held, settle_and_claim,
        needs: BATCHES, is_by_receipt: true),
    scenario!(extend_pieces, pieces_held, extend,
        needs: BATCHES),
    scenario!(extend_cancelled_pieces, cancelled_pieces_held, extend,
        needs: BATCHES),
    scenario!(release_with_pieces, pieces_held, release_worker,
        needs: BATCHES),
    scenario!(recover_pieces, pieces_overdue, recover,
        needs: BATCHES),
    scenario!(recover_cancelled_pieces, cancelled_pieces_overdue, recover,
        needs: BATCHES),
    scenario!(recover_with_an_old_batch, old_record, recover,
        needs: BATCHES),
    scenario!(cancel_a_batch, batch_to_cancel, cancel_batch,
        needs: BATCHES),
    scenario!(cancel_a_piece, piece_to_cancel, cancel,
        needs: BATCH_IDS),
    scenario!(alter_a_batch, limited_batch, alter_batch,
        needs: BATCHES),
    scenario!(look_at_batches, pieces_held, look_at_batches,
        needs: BATCHES),
    scenario!(redrive_a_piece, dead_piece, redrive,
        needs: BATCHES),
    scenario!(purge_a_batch, batch_to_purge, purge,
        needs: BATCHES),
    scenario!(work, three_to_run, work,
        is_steady: false, is_worker: true),
    scenario!(stop_at_work, three_ready, stop_at_work,
        is_steady: false, is_worker: true),
];
