//! Tests of batches that only this backend has, and of mutants.
//!
//! MUTANT-KILL: each mutant is this backend with one error, and names a case of the
//! suite. That case must catch the mutant with the expected message. The unchanged
//! backend passes the same cases in `tests/conformance.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod altered;
mod files;
mod mutants;
mod overrides;
