//! Mutants whose waits are not woken, take jobs, or do not wait.

use std::sync::Arc;

use crate::{
    mutant::{CaughtBy::Case, Mutant, NARROW},
    waits::{
        Claiming, CountsFromItself, Deaf, LeftBehind, Polling, Restless, Unbounded,
    },
};

pub(super) const WAITS: &[Mutant] = &[
    Mutant {
        name: "a wait without a claim hears nothing",
        overrides: Some(|| Arc::new(Deaf)),
        caught_by: &[Case("waiting_without_claim::a_push_wakes", "it was not woken")],
        ..NARROW
    },
    Mutant {
        name: "a wait without a claim does not wait",
        overrides: Some(|| Arc::new(Restless)),
        caught_by: &[Case(
            "waiting_without_claim::an_idle_wait_lasts",
            "waits ended in vain",
        )],
        ..NARROW
    },
    Mutant {
        name: "a wait without a claim takes a job",
        overrides: Some(|| Arc::new(Claiming)),
        caught_by: &[
            Case("waiting_without_claim::it_leases_nothing", "(0, 1)"),
            Case("waiting_without_claim::a_push_wakes", "R21"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a wait without a claim goes on as a claim after it was dropped",
        overrides: Some(|| Arc::new(LeftBehind)),
        caught_by: &[Case(
            "waiting_without_claim::a_dropped_wait_changes_nothing",
            "claim",
        )],
        ..NARROW
    },
    Mutant {
        name: "a wait without a claim has no largest limit",
        overrides: Some(|| Arc::new(Unbounded)),
        caught_by: &[Case(
            "waiting_without_claim::any_limit_is_kept",
            "a moment that can be stored",
        )],
        ..NARROW
    },
    Mutant {
        name: "a wait without a claim counts from its own beginning",
        overrides: Some(|| Arc::new(CountsFromItself::default())),
        caught_by: &[Case(
            "waiting_without_claim::a_wait_counts_from_the_claim_before",
            "the call waits for more than",
        )],
        ..NARROW
    },
    Mutant {
        name: "a waiting claim looks again only after a push",
        overrides: Some(|| Arc::new(Polling::for_pushes())),
        caught_by: &[Case(
            "company::a_waiter_finds_a_job_of_any_source",
            "the call waits for more than",
        )],
        ..NARROW
    },
];
