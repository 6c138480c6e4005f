//! Tests that the suite catches bugs: each mutant is a small broken backend, and names
//! the checks that must catch it.
//!
//! On each day a third of the mutants run through their cases, searches and random sequences,
//! and all of them with `RELQ_THOROUGH=1`.
//!
//! A mutant does not count as caught if only checks that it does not name fail, or if a
//! check that it names fails with another message. The healthy backend must pass each
//! check, too. A run with `MUTANTS=check` shows this in the same fixture. In each run, the
//! conformance tests of zset show it.
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
#[path = "mutants/followers.rs"]
mod followers;
#[path = "mutants/inspecting.rs"]
mod inspecting;
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
#[path = "explore/races.rs"]
mod races;
#[path = "mutants/redo.rs"]
mod redo;
#[path = "mutants/refused.rs"]
mod refused;
#[path = "mutants/restoring.rs"]
mod restoring;
#[path = "mutants/results.rs"]
mod results;
#[path = "mutants/schedules.rs"]
mod schedules;
#[path = "mutants/stream.rs"]
mod stream;
#[path = "mutants/table.rs"]
mod table;
#[path = "mutants/traps.rs"]
mod traps;
#[path = "mutants/turn.rs"]
mod turn;
#[path = "mutants/waits.rs"]
mod waits;
