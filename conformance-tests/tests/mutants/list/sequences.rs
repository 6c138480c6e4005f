//! Mutants whose bugs show only after a sequence of calls that no test case and no
//! fault sweep makes. Only the reference model catches them.

use std::sync::Arc;

use crate::{
    mutant::{
        CaughtBy::{Case, Model, Orders},
        HEALTHY, Mutant, NARROW, patch,
    },
    overrides::NothingInPart,
};

pub(super) const SEQUENCES: &[Mutant] = &[
    Mutant {
        name: "a call done in part is told as not done",
        overrides: Some(|| Arc::new(NothingInPart)),
        caught_by: &[Model("`o redrive !loading4`: CONSERVE, R23")],
        ..HEALTHY
    },
    Mutant {
        name: "a redriven job's unique key is free once its old expiry is over",
        patches: &[patch(
            "redrive",
            "job.unique_key, unique_holder(id, expires_at))",
            "job.unique_key, unique_holder(id, job.expires_at or 0))",
        )],
        caught_by: &[
            Model("R16: stored though the key is held"),
            Orders(
                "p push jk1e1m1; a claim 1 l0; a settle 0B | \
                 - advance 3; - advance 3 | o redrive | p push jk1 | b claim 2 l0",
                "R16: made ready again",
            ),
            Case(
                "unique_expiry::a_job_redriven_after_its_expiry_keeps_its_key",
                "R16: the second push is Stored",
            ),
        ],
        ..NARROW
    },
];
