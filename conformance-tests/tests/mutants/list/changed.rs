//! Mutants that return wrong attempts, payloads, times or errors.

use std::sync::Arc;

use relq_conformance::sweep::Check;

use crate::{
    mutant::{
        CaughtBy::{Act, Case},
        HEALTHY, Mutant, patch,
    },
    overrides::{OwnClock, SurelyNot},
    refused::{LosesATask, SulksAfterRefusal, WaitsForEver},
};

pub(super) const CHANGED: &[Mutant] = &[
    Mutant {
        name: "attempts counted at a failure only",
        patches: &[patch(
            "recover",
            "make_ready(keys, job, entry, 'front')",
            "make_ready(keys, job, with_attempt(entry, job.attempt - 1), 'front')",
        )],
        caught_by: &[Case(
            "recovery::poison_is_buried",
            "seen: [(1, false), (1, false), (1, false)]",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "a lost lease buries",
        patches: &[patch(
            "recover",
            "job.attempt >= job.max_attempts",
            "job.attempt >= 1",
        )],
        caught_by: &[Act("recover", Check::WrongEnd)],
        ..HEALTHY
    },
    Mutant {
        name: "a byte more after recovery",
        patches: &[patch(
            "recover",
            "make_ready(keys, job, entry, 'front')",
            "make_ready(keys, job, entry .. '\\0', 'front')",
        )],
        caught_by: &[Act("recover", Check::Unexpected)],
        ..HEALTHY
    },
    Mutant {
        name: "a job that nobody pushed",
        patches: &[patch(
            "recover",
            "    counts[outcome] = counts[outcome] + 1",
            "    counts[outcome] = counts[outcome] + 1\n    redis.call('RPUSH', keys.ready, 'x')",
        )],
        caught_by: &[Act("recover", Check::Unexpected)],
        ..HEALTHY
    },
    Mutant {
        name: "leases by the client's clock",
        overrides: Some(|| Arc::new(OwnClock::default())),
        caught_by: &[Case(
            "clocks::a_fast_clocks_lease_ends_in_time",
            "seen: 0\nexpected: 1",
        )],
        ..HEALTHY
    },
    Mutant {
        name: "EVALSHA without reload",
        // The script that reads the marker declares only keys that begin with a brace.
        server: &["ACL", "SETUSER", "default", "-eval", "(+eval ~{*)"],
        caught_by: &[Act("claim", Check::ScriptReload)],
        ..HEALTHY
    },
    Mutant {
        name: "a lost answer is told as a refusal",
        overrides: Some(|| Arc::new(SurelyNot)),
        caught_by: &[Act("push", Check::ErrorClass)],
        ..HEALTHY
    },
    Mutant {
        name: "no call after one that was refused",
        overrides: Some(|| Arc::new(SulksAfterRefusal::default())),
        caught_by: &[Act("pause", Check::Repeat)],
        ..HEALTHY
    },
    Mutant {
        name: "a call that waits for ever",
        overrides: Some(|| Arc::new(WaitsForEver::default())),
        caught_by: &[Act("pause", Check::Hang)],
        ..HEALTHY
    },
    Mutant {
        name: "a task that dies unheard",
        overrides: Some(|| Arc::new(LosesATask)),
        caught_by: &[Act("pause", Check::Panic)],
        ..HEALTHY
    },
];
