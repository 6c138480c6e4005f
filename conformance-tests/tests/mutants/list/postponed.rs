//! Mutants with small bugs in postponed jobs, which few cases catch.

use crate::mutant::{
    CaughtBy::{Case, Model, Orders, Pairs},
    Mutant, NARROW, patch,
};

pub(super) const POSTPONED: &[Mutant] = &[
    Mutant {
        name: "a postponement counts as an attempt",
        patches: &[patch("fail", "math.max(0, job.attempt - 1)", "job.attempt")],
        caught_by: &[
            Case("postponing::the_last_attempt_can_be_postponed", "R26: not counted"),
            Model("R11: shown with"),
            Pairs("R11: shown with"),
            Orders(
                "p push j; a claim 1 l0 | a settle 0P1 | - advance 3 | b claim 1 l0",
                "R11: not this attempt",
            ),
        ],
        ..NARROW
    },
    Mutant {
        name: "a postponement overwrites the last error",
        patches: &[patch(
            "fail",
            "job.attempt - 1)), delay_ms)",
            "job.attempt - 1)), delay_ms)\n  \
             redis.call('HSET', keys.errors, job.id, 'e' .. 'postponed')",
        )],
        caught_by: &[
            Case("postponing::a_postponed_job_keeps_its_error", "postponed"),
            Case("postponing::a_postponement_is_no_failure", "postponed"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a postponed job is ready at once",
        patches: &[patch(
            "fail",
            "job.attempt - 1)), delay_ms)",
            "job.attempt - 1)), 0)",
        )],
        caught_by: &[
            Case("postponing::a_postponed_job_is_not_early", "seen: ["),
            Model("R14"),
            Orders("p push j; a claim 1 l0 | a settle 0P1 | b claim 1 l0", "R14"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a postponement at the last attempt buries the job",
        patches: &[patch(
            "fail",
            "elseif job and why == 'p' then",
            "elseif job and why == 'p' and job.attempt < job.max_attempts then",
        )],
        caught_by: &[Case(
            "postponing::the_last_attempt_can_be_postponed",
            "R1: a claim gets a job",
        )],
        ..NARROW
    },
    Mutant {
        name: "a postponement frees the unique key",
        patches: &[patch(
            "fail",
            "  hold_until_expiry(keys.unique, job)\nend\n\nlocal function fail",
            "  free_unique(keys.unique, job)\nend\n\nlocal function fail",
        )],
        caught_by: &[Case("postponing::a_postponed_job_holds_its_key", "Stored")],
        ..NARROW
    },
    Mutant {
        name: "a postponed job holds its unique key after its expiry",
        patches: &[patch(
            "fail",
            "  hold_until_expiry(keys.unique, job)\nend\n\nlocal function fail",
            "end\n\nlocal function fail",
        )],
        caught_by: &[Case(
            "postponing::the_key_of_a_postponed_job_expires",
            "not stored: Duplicate",
        )],
        ..NARROW
    },
    Mutant {
        name: "a postponed job is also still leased",
        patches: &[patch(
            "fail",
            "  if entry then\n    drop_leased",
            "  if entry and why == 'p' then\n  elseif entry then\n    drop_leased",
        )],
        caught_by: &[Case(
            "postponing::a_postponed_job_has_no_holder",
            "expected: (0, 0, 0)",
        )],
        ..NARROW
    },
    Mutant {
        name: "a postponed job loses its expiry",
        patches: &[patch(
            "fail",
            "run_again(job, with_attempt(entry, math.max(0, job.attempt - 1)),",
            "if job.expires_at then\n    \
             local at = 12 + #job.id\n    \
             entry = entry:sub(1, at - 1) .. struct.pack('>I8', 0) .. entry:sub(at + 8)\n  \
             end\n  \
             run_again(job, with_attempt(entry, math.max(0, job.attempt - 1)),",
        )],
        caught_by: &[
            Case("postponing::a_postponed_job_expires", "seen: ["),
            Case("postponing::a_postponed_job_keeps_its_options", "expires_at: "),
        ],
        ..NARROW
    },
];
