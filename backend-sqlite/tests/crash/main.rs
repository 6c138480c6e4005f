//! Injects faults at every statement of this backend: the process is killed before or
//! after the statement, the process freezes, the disk is full or fails, or the file is
//! locked.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod broken;
mod broken_batches;
mod mutants;

use relq_conformance::{
    own::sqlite::{SQLITE, statements},
    sweep::processes::{Child, Embedded, every_step},
};

/// Statements that only `push_in` makes, in a transaction of the application, which no
/// queue of the sweep makes. `tests/pattern/push_in.rs` kills the process in such
/// transactions, and lets statements of them fail.
const OF_PUSH_IN: [&str; 2] = ["lock_take", "temporary_namesake"];

/// The statement of a push that takes the key of an expired follower (R30), which no
/// scenario of the sweep makes. `tests/pattern/followers_killed.rs` kills the process in
/// such a call, and lets the statement fail.
const OF_FOLLOWERS: [&str; 1] = ["unique_key_free"];

/// The statement of a call that waits for a result and looks again. It only reads, and no
/// scenario waits so long. `tests/pattern/results.rs` runs it.
const OF_WAITS: [&str; 1] = ["result_pending"];

/// The statement of the list of queues, which is no call of a queue. It only reads.
/// `tests/pattern/inspecting` runs it.
const OF_STORES: [&str; 1] = ["queue_list"];

/// The statement of a look-up of a job that has ended. It only reads, and the scenario of
/// a look-up finds a stored job. The cases of the suite run it.
const OF_ENDED: [&str; 1] = ["ended_find"];

/// R1, R3, R5, R7, R8, R9, R21, R23: each call happens completely or not at all, for
/// every fault at every statement. No job is lost, invented or stuck.
#[test]
fn every_statement_survives_every_fault() {
    let child = Child::Test("every_statement_survives_every_fault");
    let tally = every_step(Embedded { child, ..SQLITE });

    assert!(tally.failures.is_empty(), "{}", tally.failures.join("\n"));
    assert!(tally.unsupported.is_empty(), "{:?}", tally.unsupported);
    assert_eq!(tally.faults_fired, tally.runs);
    assert!(tally.is_covered(), "{:#?}", tally.coverage);
    // COVERAGE: at least one statement exists, and faults were injected at each.
    assert_ne!(statements().count(), 0);
    let elsewhere =
        [&OF_PUSH_IN[..], &OF_FOLLOWERS, &OF_WAITS, &OF_STORES, &OF_ENDED].concat();
    let is_elsewhere = |name: &String| elsewhere.contains(&name.as_str());
    let never_hit: Vec<_> = statements()
        .filter(|name| {
            !is_elsewhere(name) && !tally.coverage.contains_key(name.as_str())
        })
        .collect();
    assert_eq!(never_hit, [""; 0]);
}
