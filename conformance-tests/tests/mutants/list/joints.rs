//! Mutants with a bug at the boundary between two steps of one call.

use std::sync::Arc;

use crate::{
    by_pages::{
        AnswersTurnedRound, BytesOfAStep, ContentsOnePlaceOff, FirstStepExtended,
        FullPages, LastStepFirst, PagesWithAGap, PositionsOfAStep, PurgeEveryOtherPage,
        RedriveUntilStuck,
    },
    mutant::{CaughtBy::Case, Mutant, NARROW},
};

pub(super) const JOINTS: &[Mutant] = &[
    Mutant {
        name: "a page has any number of bytes",
        overrides: Some(|| Arc::new(FullPages)),
        caught_by: &[
            Case(
                "joints::pages_of_large_payloads_end_early",
                "R21: a page of ready jobs",
            ),
            Case(
                "joints::pages_of_large_headers_end_early",
                "R21: a page of ready jobs",
            ),
            Case("joints::pages_of_long_errors_end_early", "R21: a page of dead jobs"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a redrive ends at a page of stuck jobs",
        overrides: Some(|| Arc::new(RedriveUntilStuck)),
        caught_by: &[Case(
            "joints::a_redrive_passes_stuck_jobs_at_every_joint",
            "seen: Redriven { moved: 0",
        )],
        ..NARROW
    },
    Mutant {
        name: "a purge of dead jobs skips every other page",
        overrides: Some(|| Arc::new(PurgeEveryOtherPage)),
        caught_by: &[Case("joints::selections_of_several_steps_are_exact", "seen: 7")],
        ..NARROW
    },
    Mutant {
        name: "lost leases are reported by their place in a step",
        overrides: Some(|| Arc::new(PositionsOfAStep)),
        caught_by: &[Case(
            "joints::ends_of_several_steps_apply_to_their_jobs",
            "8 jobs: Done",
        )],
        ..NARROW
    },
    Mutant {
        name: "the last step of a return is at the front",
        overrides: Some(|| Arc::new(LastStepFirst)),
        caught_by: &[Case(
            "joints::returns_of_several_steps_keep_the_order",
            "seen: [",
        )],
        ..NARROW
    },
    Mutant {
        name: "a page ends before the first job of the next",
        overrides: Some(|| Arc::new(PagesWithAGap)),
        caught_by: &[Case(
            "joints::pages_of_every_size_show_each_job_once",
            "too many (+) or missing (-)",
        )],
        ..NARROW
    },
    Mutant {
        name: "a heartbeat extends the leases of its first step",
        overrides: Some(|| Arc::new(FirstStepExtended)),
        caught_by: &[Case(
            "joints::a_heartbeat_of_several_steps_answers_for_its_jobs",
            "seen: [",
        )],
        ..NARROW
    },
    Mutant {
        name: "a push takes later contents from the place before",
        overrides: Some(|| Arc::new(ContentsOnePlaceOff)),
        caught_by: &[Case(
            "joints::a_call_of_any_number_of_jobs_keeps_them_apart",
            "job 65 of 84: its payload",
        )],
        ..NARROW
    },
    Mutant {
        name: "a push answers for later jobs in another order",
        overrides: Some(|| Arc::new(AnswersTurnedRound)),
        caught_by: &[Case(
            "joints::a_call_of_any_number_of_jobs_answers_for_each",
            "R16: job",
        )],
        ..NARROW
    },
    Mutant {
        name: "each step of a claim may take the bytes of a claim",
        overrides: Some(|| Arc::new(BytesOfAStep)),
        caught_by: &[
            Case(
                "joints::a_claim_of_several_steps_is_bounded_by_bytes",
                "R6: one claim",
            ),
            Case("leases::a_claim_is_bounded_by_bytes", "one claim takes"),
        ],
        ..NARROW
    },
];
