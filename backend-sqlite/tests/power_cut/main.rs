//! Power cuts: the file is opened as a cut leaves it, at every write and every sync.
//!
//! A program of calls runs on a recorded disk (`relq-power-cut`). Its model says what
//! the store holds after each call. Then a sample of the files that cuts may leave is
//! opened, and the store must hold what the durability setting promises.
//! `RELQ_POWER_CUT_IMAGES` sets the size of the sample of each test, and
//! `RELQ_POWER_CUT_SEED` chooses it.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod judge;
mod model;
mod mutants;
mod programs;
mod run;

use relq_sqlite::Durability;

use crate::programs::{
    all_calls, callers_together, first_push, migrate_from, rare_calls, two_stores,
};
use crate::run::Run;

macro_rules! promise {
    ($(#[$rule:meta])* $test:ident: $durability:ident, $program:expr) => {
        $(#[$rule])*
        #[test]
        fn $test() {
            let failures = Run::new(stringify!($test), Durability::$durability).judge($program);
            assert!(failures.is_empty(), "{}", failures.join("\n"));
        }
    };
}

promise! {
    /// R1: a file whose creation was cut off is opened, and created again. A sample of
    /// all the cuts of the creation and of one push.
    full_creates_the_file_again: Full, first_push
}

promise! {
    /// R1: a file whose creation was cut off is opened, also if a commit returns before
    /// its data is on the disk.
    normal_creates_the_file_again: Normal, first_push
}

promise! {
    /// R1, R3, R4, R8, R11, R16, B2: whatever a call answered holds after a power cut.
    full_keeps_every_answered_call: Full, all_calls
}

promise! {
    /// R1, R5, R8: a cut takes back only the last calls, in order and completely.
    normal_loses_only_the_last_calls: Normal, all_calls
}

promise! {
    /// R4, R7, R9, R14, R16, R17, R24, B7: what the rarer calls answered holds, too.
    full_keeps_every_answered_rare_call: Full, rare_calls
}

promise! {
    /// R1, R5: a cut takes back only the last of the rarer calls.
    normal_loses_only_the_last_rare_calls: Normal, rare_calls
}

promise! {
    /// R1, R8: two processes with one file keep what each of them answered.
    full_keeps_what_two_processes_answered: Full, two_stores
}

promise! {
    /// R1, R8: callers that share a commit get their answers after its sync.
    full_keeps_what_callers_share: Full, callers_together
}

promise! {
    /// R1, R5: callers that share a commit lose their calls in order.
    normal_loses_shared_calls_in_order: Normal, callers_together
}

promise! {
    /// R1: a cut during the migration from version 1 keeps all jobs.
    full_migrates_version_1_at_once: Full, |run| migrate_from(run, 1)
}

promise! {
    /// R1: a cut during the migration from version 2 keeps all jobs.
    full_migrates_version_2_at_once: Full, |run| migrate_from(run, 2)
}

promise! {
    /// R1: a cut during the migration keeps all jobs, also if commits do not wait.
    normal_migrates_version_1_at_once: Normal, |run| migrate_from(run, 1)
}

promise! {
    /// R1: a cut during the migration keeps all jobs, also if commits do not wait.
    normal_migrates_version_2_at_once: Normal, |run| migrate_from(run, 2)
}
