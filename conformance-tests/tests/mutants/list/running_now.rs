//! Mutants that run a job twice, too early, or not as if it were due (R32).

use crate::mutant::{
    CaughtBy::{Act, Case},
    Mutant, NARROW, patch,
};
use relq_conformance::sweep::Check;

/// The line that makes the job ready.
const READY: &str = "make_due_ready(keys, id, entry, job, server_ms())";

pub(super) const RUNNING_NOW: &[Mutant] = &[
    Mutant {
        name: "a job that is run now stays scheduled",
        patches: &[patch("run_now", "redis.call('ZREM', keys.later, id)\nend", "end")],
        caught_by: &[
            Case("running_now::a_delayed_job_is_run_now", "R32"),
            Case("running_now::a_second_call_finds_nothing", "R32"),
            Act("run_a_job_now", Check::Conserve),
        ],
        ..NARROW
    },
    Mutant {
        name: "a held job is run",
        patches: &[patch("run_now", "if job and job.leader then", "if false then")],
        caught_by: &[Case("running_now::a_held_job_is_not_run", "R32")],
        ..NARROW
    },
    Mutant {
        name: "running a job now counts an attempt",
        patches: &[patch(
            "run_now",
            READY,
            "if job then entry = entry:sub(1, 6) .. struct.pack('>H', job.attempt + 1) \
             .. entry:sub(9) end make_due_ready(keys, id, entry, job, server_ms())",
        )],
        caught_by: &[
            Case("running_now::a_retried_job_keeps_attempt_and_error", "R32"),
            Case("running_now::a_postponed_job_is_run_now", "R32"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a job that is run now goes to the front",
        patches: &[patch(
            "run_now",
            "make_ready(keys, job, entry, 'back')",
            "make_ready(keys, job, entry, 'front')",
        )],
        caught_by: &[
            Case("running_now::it_goes_to_the_back", "R32: at the back"),
            Case("running_now::it_keeps_its_priority", "R32: by priority"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a job that is run now is due, and wakes no claim",
        patches: &[patch(
            "run_now",
            READY,
            "redis.call('ZADD', keys.later, server_ms(), id)",
        )],
        caught_by: &[
            Case("running_now::it_wakes_a_waiting_claim", "R21"),
            Case("running_now::a_second_call_finds_nothing", "R32"),
        ],
        ..NARROW
    },
    Mutant {
        name: "the age of a job that is run now counts from its push",
        patches: &[patch(
            "run_now",
            "with_time(entry, job, READY_TIME, now_ms)",
            "entry",
        )],
        caught_by: &[Case("running_now::the_age_begins", "R27")],
        ..NARROW
    },
    Mutant {
        name: "any job is said to be run now",
        patches: &[patch(
            "run_now",
            "if not redis.call('ZSCORE', keys.later, id) then return {'not scheduled'} end",
            "if not redis.call('ZSCORE', keys.later, id) then return {'ready', 0} end",
        )],
        caught_by: &[
            Case("running_now::no_other_job_is_run", "R32"),
            Case("running_now::a_second_call_finds_nothing", "R32"),
        ],
        ..NARROW
    },
    Mutant {
        name: "a job that is run now forgets its error",
        patches: &[patch(
            "run_now",
            READY,
            "make_due_ready(keys, id, entry, job, server_ms()) \
             redis.call('HDEL', keys.errors, id)",
        )],
        caught_by: &[Case("running_now::a_retried_job_keeps_attempt_and_error", "R32")],
        ..NARROW
    },
];
