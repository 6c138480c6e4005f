//! Mutants that test the suite's own mechanisms.

use std::sync::Arc;

use relq_conformance::sweep::Check;

use crate::{
    mutant::{CaughtBy::Act, HEALTHY, Mutant},
    overrides::{NowAndThen, PausedForGood},
};

pub(super) const SUITE: &[Mutant] = &[
    Mutant {
        name: "other commands now and then",
        overrides: Some(|| Arc::new(NowAndThen::default())),
        caught_by: &[Act("claim", Check::Deterministic)],
        ..HEALTHY
    },
    Mutant {
        name: "an answer without a command",
        overrides: Some(|| Arc::new(PausedForGood::default())),
        caught_by: &[Act("pause", Check::FaultFired), Act("pause", Check::Coverage)],
        ..HEALTHY
    },
];
