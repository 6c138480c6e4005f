//! Mutants that fail only when several calls run at the same moment, and mutants that
//! report a refusal wrongly.

use std::sync::Arc;

use crate::{
    company::{
        AllMaybe, DeniedForNow, LostForTheFirst, NothingToRelease, OneHeartbeat,
        PushesMixedUp, RefusedTogether, SameJobs, SettlementsMixedUp,
    },
    mutant::{CaughtBy::Case, Mutant, NARROW, patch},
};

pub(super) const COMPANY: &[Mutant] = &[
    Mutant {
        name: "pushes at once get each other's ids",
        overrides: Some(|| Arc::new(PushesMixedUp::default())),
        caught_by: &[Case(
            "company::pushes_at_once_answer_for_their_own_jobs",
            "of caller",
        )],
        ..NARROW
    },
    Mutant {
        name: "settlements at once get each other's answers",
        overrides: Some(|| Arc::new(SettlementsMixedUp::default())),
        caught_by: &[Case(
            "company::settlements_at_once_end_their_own_jobs",
            "expected: [",
        )],
        ..NARROW
    },
    Mutant {
        name: "an invalid push spoils those beside it",
        overrides: Some(|| Arc::new(RefusedTogether::default())),
        caught_by: &[Case(
            "company::an_invalid_push_at_once_with_others_spoils_none",
            "seen: [false",
        )],
        ..NARROW
    },
    Mutant {
        name: "a lost answer of pushes at once is told to the first only",
        overrides: Some(|| Arc::new(LostForTheFirst::default())),
        caught_by: &[Case(
            "company::each_push_at_once_knows_what_became_of_its_jobs",
            "Unavailable",
        )],
        ..NARROW
    },
    Mutant {
        name: "one of the heartbeats of a moment is carried out",
        overrides: Some(|| Arc::new(OneHeartbeat::default())),
        caught_by: &[Case(
            "company::heartbeats_at_once_keep_their_own_leases",
            ": [Until(",
        )],
        ..NARROW
    },
    Mutant {
        name: "claims at once get the same job",
        overrides: Some(|| Arc::new(SameJobs::default())),
        caught_by: &[Case("company::claims_at_once_share_the_jobs", "workers")],
        ..NARROW
    },
    Mutant {
        name: "a claim that leaves jobs of a priority behind wakes nobody",
        patches: &[patch(
            "claim",
            "if redis.call('EXISTS', ranked) == 1 then notify({wake = wake}) end",
            "",
        )],
        caught_by: &[Case("company::waiters_share_pushed_jobs", "one was not woken")],
        ..NARROW
    },
    Mutant {
        name: "a settlement that was refused is told as maybe done",
        overrides: Some(|| Arc::new(AllMaybe)),
        caught_by: &[Case(
            "refusals::a_call_that_is_always_refused_changes_nothing",
            "settle, refused by LOADING",
        )],
        ..NARROW
    },
    Mutant {
        name: "a release that was refused is told as done",
        overrides: Some(|| Arc::new(NothingToRelease)),
        caught_by: &[Case(
            "refusals::a_call_that_is_always_refused_changes_nothing",
            "release_worker, refused by LOADING",
        )],
        ..NARROW
    },
    Mutant {
        name: "a missing right is told as an outage",
        overrides: Some(|| Arc::new(DeniedForNow)),
        caught_by: &[Case(
            "refusals::a_call_that_is_always_refused_changes_nothing",
            "claim, refused by NOAUTH",
        )],
        ..NARROW
    },
];
