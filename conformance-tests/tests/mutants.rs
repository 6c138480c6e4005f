//! Tests that the suite catches bugs: each mutant is a small broken backend, and names
//! the checks that must catch it.
//!
//! A mutant counts as not caught if another check catches it than the one it names, or
//! if the message is another. The healthy backend must pass each check in the same
//! fixture.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "mutants/by_pages.rs"]
mod by_pages;
#[path = "mutants/careless.rs"]
mod careless;
#[path = "mutants/circular.rs"]
mod circular;
#[path = "mutants/company.rs"]
mod company;
#[path = "mutants/declared.rs"]
mod declared;
#[path = "mutants/judge.rs"]
mod judge;
#[path = "mutants/keyspace.rs"]
mod keyspace;
#[path = "mutants/keyspace_judge.rs"]
mod keyspace_judge;
#[path = "mutants/list.rs"]
mod list;
#[path = "mutants/mutant.rs"]
mod mutant;
#[path = "mutants/overrides.rs"]
mod overrides;
#[path = "mutants/refused.rs"]
mod refused;
#[path = "mutants/stream.rs"]
mod stream;
#[path = "mutants/table.rs"]
mod table;
#[path = "mutants/traps.rs"]
mod traps;
