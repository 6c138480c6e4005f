//! Mutants that restore a job twice, in part, or not as it was (R34).

use std::sync::Arc;

use crate::{
    mutant::{
        CaughtBy::{Act, Case},
        HEALTHY, Mutant, NARROW, patch,
    },
    restoring::RestoresDeadAsReady,
};
use relq_conformance::sweep::Check;

/// The line that notes what a restored job has beside its entry.
const NOTES: &str = "entry = note_new_job(new, job, entry, job.is_dead and DEAD .. job.why or UNFINISHED)";

pub(super) const RESTORING: &[Mutant] = &[
    Mutant {
        name: "the attempts of a restored job begin anew",
        patches: &[patch(
            "restore",
            NOTES,
            "entry = entry:sub(1, 6) .. '\\0\\0' .. entry:sub(9) \
             entry = note_new_job(new, job, entry, job.is_dead and DEAD .. job.why or UNFINISHED)",
        )],
        caught_by: &[
            Case("restoring::attempts_count_on", "R34: the third attempt"),
            Case("restoring::a_dead_letter_is_restored", "R34"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a restored job is stored again",
        patches: &[patch(
            "restore",
            "if not note_duplicate(keys, new, job, (at - FIRST) / PUSH_FIELDS) then",
            "do",
        )],
        caught_by: &[
            Case("restoring::a_repeated_restore_stores_nothing", "R34"),
            Case("restoring::the_key_of_a_restored_job_is_held", "R34"),
            Case("joints::known_jobs_at_every_joint_are_answered", "R34"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a restored job has died now",
        patches: &[patch(
            "restore",
            "behind_equals(keys.dead, job.at_ms)",
            "behind_equals(keys.dead, now_ms)",
        )],
        caught_by: &[
            Case("restoring::a_dead_letter_is_restored", "R34"),
            Case("restoring::dead_jobs_keep_the_order_of_their_deaths", "R34"),
        ],
        ..NARROW
    },
    Mutant {
        name: "restored jobs that died together are in the order of their ids",
        patches: &[patch(
            "restore",
            "behind_equals(keys.dead, job.at_ms)",
            "job.at_ms",
        )],
        caught_by: &[Case(
            "restoring::dead_jobs_keep_the_order_of_their_deaths",
            "R34",
        )],
        ..NARROW
    },
    Mutant {
        name: "the last error of a restored job is lost unless it is dead",
        patches: &[patch("restore", "if job.why ~= '' then", "if job.is_dead then")],
        caught_by: &[
            Case("restoring::the_last_error_is_shown_until_another", "R34"),
            Case("restoring::lost_leases_count_on", "R34"),
        ],
        ..NARROW
    },
    Mutant {
        name: "the age of a restored job counts from its push",
        patches: &[patch(
            "restore",
            "if not job.at_ms then entry = with_time(entry, read_entry(entry), READY_TIME, \
             now_ms) end",
            "",
        )],
        caught_by: &[Case("restoring::a_restored_job_waits_from_now_on", "R27")],
        ..NARROW
    },
    Mutant {
        name: "what is recorded of a restored dead letter is unfinished",
        patches: &[patch(
            "restore",
            "job.is_dead and DEAD .. job.why or UNFINISHED",
            "UNFINISHED",
        )],
        caught_by: &[Case("restoring::results_begin_anew", "R34")],
        ..NARROW
    },
    Mutant {
        name: "a dead letter is restored as a ready job",
        overrides: Some(|| Arc::new(RestoresDeadAsReady)),
        caught_by: &[
            Case("restoring::a_dead_letter_is_restored", "R34"),
            Case("restoring::a_restored_dead_letter_is_redriven", "R34"),
            Act("restore_jobs", Check::WrongEnd),
        ],
        ..HEALTHY
    },
];
