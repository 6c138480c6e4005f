//! Every statement of this backend, hit by faults: processes killed before and after it,
//! disks that are full or fail at it, locks, and a process that stands still at it.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod broken;
mod broken_batches;
mod mutants;

use relq_conformance::{
    processes::{Child, Embedded, every_step},
    sqlite::{SQLITE, statements},
};

/// R1, R3, R5, R7, R8, R9, R21, R23: each call is whole or not at all, nothing is
/// lost, invented or left behind, whatever happens at whichever statement.
#[test]
fn every_statement_bears_every_fault() {
    let child = Child::Test("every_statement_bears_every_fault");
    let tally = every_step(Embedded { child, ..SQLITE });

    assert!(tally.failures.is_empty(), "{}", tally.failures.join("\n"));
    assert!(tally.unsupported.is_empty(), "{:?}", tally.unsupported);
    assert_eq!(tally.faults_fired, tally.runs);
    assert!(tally.is_covered(), "{:#?}", tally.coverage);
    // COVERAGE: no statement is passed by.
    assert_ne!(statements().count(), 0);
    for name in statements() {
        assert!(tally.coverage.contains_key(name), "{name} was never hit");
    }
}
