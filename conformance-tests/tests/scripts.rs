//! Tests that the suite catches bugs that no author thought of. One at a time, every
//! write in zset's scripts is removed and every comparison is inverted.
//!
//! `SCRIPT_MUTANTS.md` lists the result of each change. It takes a quarter of an hour
//! to generate:
//!
//! ```text
//! cargo test -p relq-conformance --test scripts -- --ignored
//! ```
//!
//! `SCRIPT_MUTANTS=more` continues an existing table: it tries only changes and cases
//! that the table does not list yet. Use it after adding cases or small changes of the
//! scripts.
//!
//! The other tests check in each run that the table still matches the scripts and
//! cases.
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
