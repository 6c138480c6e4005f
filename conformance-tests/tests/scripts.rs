//! Tests that the suite catches bugs that no author thought of. One at a time, every
//! write in the scripts of the Redis backends, and in the statements of SQLite, is removed and
//! every comparison is inverted.
//!
//! `script-mutants` has a page for each backend, which lists the result of each change. A
//! page takes some twenty minutes to generate:
//!
//! ```text
//! cargo test -p relq-conformance --test scripts -- --ignored zset
//! ```
//!
//! `SCRIPT_MUTANTS=more` continues an existing page: it tries only changes and cases
//! that the page does not list yet, and changes that no case catches and that have no reason
//! yet. Use it after adding cases or small changes of the scripts. `SCRIPT_MUTANTS=new` tries
//! only what is not listed.
//!
//! The other tests check in each run that the pages still match the scripts and cases.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "scripts/change.rs"]
mod change;
#[path = "scripts/code.rs"]
mod code;
#[path = "scripts/judge.rs"]
mod judge;
#[path = "scripts/on_redis.rs"]
mod on_redis;
#[path = "scripts/on_sqlite.rs"]
mod on_sqlite;
#[path = "scripts/page.rs"]
mod page;
#[path = "scripts/pages.rs"]
mod pages;
#[path = "scripts/source.rs"]
mod source;
#[path = "scripts/sql.rs"]
mod sql;
#[path = "scripts/survivors/mod.rs"]
mod survivors;
