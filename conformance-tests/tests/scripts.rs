//! The suite catches bugs that nobody thought of: every write of zset's scripts left
//! out, every comparison turned round, one at a time.
//!
//! `SCRIPT_MUTANTS.md` says what became of each. To make it takes a quarter of an hour:
//!
//! ```text
//! cargo test -p relq-conformance --test scripts -- --ignored
//! ```
//!
//! With `SCRIPT_MUTANTS=more` it is gone on with: only what the table does not tell of
//! yet is tried, for new cases and small changes of the scripts.
//!
//! What runs in each test is whether it still speaks of the scripts and cases as they
//! are.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "scripts/change.rs"]
mod change;
#[path = "scripts/judge.rs"]
mod judge;
#[path = "scripts/lua.rs"]
mod lua;
#[path = "scripts/survivors.rs"]
mod survivors;
#[path = "scripts/table.rs"]
mod table;
