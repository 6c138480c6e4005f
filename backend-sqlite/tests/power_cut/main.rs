//! Tests of power cuts: each opens the file as a power cut leaves it. The cut may come
//! at any write or sync.
//!
//! A program of calls runs on a recorded disk (`relq-power-cut`). Its model says what
//! the store holds after each call. Then the test opens a sample of the files that cuts
//! may leave, and the store must hold what the durability setting promises.
//! `RELQ_POWER_CUT_IMAGES` sets the size of the sample of each test, and
//! `RELQ_POWER_CUT_SEED` is the seed of the random choice.

#![cfg(unix)]
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod judge;
mod model;
mod mutants;
mod programs;
mod run;

use relq_sqlite::Durability;

use crate::programs::{
    all_calls, callers_together, first_push, followers, migrate_from, rare_calls,
    two_stores,
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
    /// R1: if the power is cut while the file is created, the next opening creates the
    /// file again. The test samples the cuts during the creation and one push.
    full_creates_the_file_again: Full, first_push
}

promise! {
    /// R1: if the power is cut while the file is created, the next opening creates the
    /// file again, even if commits do not wait for the disk.
    normal_creates_the_file_again: Normal, first_push
}

promise! {
    /// R1, R3, R4, R8, R11, R16, B2: no call that returned is lost in a power cut.
    full_keeps_every_answered_call: Full, all_calls
}

promise! {
    /// R1, R5, R8: if commits do not wait for the disk, a power cut loses only the last
    /// calls, and no call in part.
    normal_loses_only_the_last_calls: Normal, all_calls
}

promise! {
    /// R4, R7, R9, R14, R16, R17, R24, B7: no rarer call (recovery, cancel, redrive and
    /// others) that returned is lost in a power cut.
    full_keeps_every_answered_rare_call: Full, rare_calls
}

promise! {
    /// R1, R5: if commits do not wait for the disk, a power cut loses only the last of
    /// the rarer calls.
    normal_loses_only_the_last_rare_calls: Normal, rare_calls
}

promise! {
    /// R1, R30: no call that moved followers and returned is lost in a power cut. A
    /// follower is released or cancelled if and only if its leader has ended.
    full_keeps_every_answered_call_of_followers: Full, followers
}

promise! {
    /// R1, R5, R30: if commits do not wait for the disk, a power cut loses only the last
    /// calls that moved followers, and none of them in part.
    normal_loses_only_the_last_calls_of_followers: Normal, followers
}

promise! {
    /// R1, R8: when two processes use one file, no call that returned is lost in a
    /// power cut.
    full_keeps_what_two_processes_answered: Full, two_stores
}

promise! {
    /// R1, R8: callers that share a commit get their results only after its sync.
    full_keeps_what_callers_share: Full, callers_together
}

promise! {
    /// R1, R5: if commits do not wait for the disk, callers that share commits lose
    /// only their last calls in a power cut.
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
    /// R1: a cut during the migration from version 1 keeps all jobs, even if commits do
    /// not wait for the disk.
    normal_migrates_version_1_at_once: Normal, |run| migrate_from(run, 1)
}

promise! {
    /// R1: a cut during the migration from version 2 keeps all jobs, even if commits do
    /// not wait for the disk.
    normal_migrates_version_2_at_once: Normal, |run| migrate_from(run, 2)
}

promise! {
    /// R1: a cut during the migration from version 6 keeps all jobs.
    full_migrates_version_6_at_once: Full, |run| migrate_from(run, 6)
}

promise! {
    /// R1: a cut during the migration from version 6 keeps all jobs, even if commits do
    /// not wait for the disk.
    normal_migrates_version_6_at_once: Normal, |run| migrate_from(run, 6)
}
