//! Mutants that find the wrong job, or none, or miss jobs of a listing (R31).

use std::sync::Arc;

use crate::{
    inspecting::{
        KnowsOneOrder, ListsLeasesByRank, OutlinesHaveNoErrors, TakesAnIdForAPattern,
    },
    mutant::{CaughtBy::Case, Mutant, NARROW, patch},
};

/// The line that tells apart the ids that are remembered, and those of stored jobs and of
/// forgotten ones.
const IS_PAST: &str = "local is_past = not forget_at or forget_at == 'inf' \
     or tonumber(forget_at) <= server_ms()";

pub(super) const INSPECTING: &[Mutant] = &[
    Mutant {
        name: "the id of a live job is taken for a remembered one",
        patches: &[patch(
            "find_job",
            IS_PAST,
            "local is_past = not forget_at or tonumber(forget_at) <= server_ms()",
        )],
        caught_by: &[Case(
            "inspecting::a_ready_leader_is_found_with_its_followers",
            "R31: Ended",
        )],
        ..NARROW
    },
    Mutant {
        name: "a look-up remembers an id for too long",
        patches: &[patch(
            "find_job",
            IS_PAST,
            "local is_past = not forget_at or forget_at == 'inf'",
        )],
        caught_by: &[Case("inspecting::a_forgotten_id_is_unknown", "R31")],
        ..NARROW
    },
    Mutant {
        name: "a look-up says of each ended job that it was done",
        patches: &[patch(
            "find_job",
            "return 'ended', forget_at",
            "return 'ended', string.format('%d', forget_at)",
        )],
        caught_by: &[Case("inspecting::an_ended_job_says_how", "R31")],
        ..NARROW
    },
    Mutant {
        name: "a look-up names no followers",
        patches: &[patch(
            "find_job",
            "redis.call('HGET', results_key(keys, 'followers'), id)",
            "false",
        )],
        caught_by: &[
            Case("inspecting::a_leader_lists_its_followers", "R31"),
            Case("inspecting::a_leased_leader_lists_its_followers", "R31"),
            Case("inspecting::a_ready_leader_is_found_with_its_followers", "R30"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a look-up among the leases takes an id for a pattern",
        overrides: Some(|| Arc::new(TakesAnIdForAPattern)),
        caught_by: &[Case("inspecting::an_id_of_glob_characters_is_found", "R31: a*")],
        ..NARROW
    },
    Mutant {
        name: "a page of leased jobs begins at a rank",
        overrides: Some(|| Arc::new(ListsLeasesByRank)),
        caught_by: &[Case(
            "inspecting::leased_pages_miss_none_that_stay",
            "R31: jobs that stayed are on no page",
        )],
        ..NARROW
    },
    Mutant {
        name: "a page newest first begins behind all jobs of one time",
        patches: &[patch(
            "read_members",
            "size - count_before(set, score, name) or 0",
            "size - redis.call('ZCOUNT', set, '-inf', '(' .. score) or 0",
        )],
        caught_by: &[Case("inspecting::equal_times_are_listed_over_pages", "missing")],
        ..NARROW
    },
    Mutant {
        name: "a listing newest first is one as served",
        overrides: Some(|| Arc::new(KnowsOneOrder)),
        caught_by: &[
            Case("inspecting::newest_first_is_the_reverse", "R31"),
            Case("inspecting::newest_first_begins_with_the_last_served", "R31"),
        ],
        ..NARROW
    },
    Mutant {
        name: "an outline has no error",
        overrides: Some(|| Arc::new(OutlinesHaveNoErrors)),
        caught_by: &[Case("inspecting::outlines_have_id_state_and_error", "R31")],
        ..NARROW
    },
];
