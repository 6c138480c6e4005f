//! Batches in a file; and MUTANT-KILL: each mutant is this backend with one error, and
//! the case that it names catches it with the expected message. The unchanged backend
//! passes the same cases in `tests/conformance.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod altered;
mod files;
mod mutants;
mod overrides;
