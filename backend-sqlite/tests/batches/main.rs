//! Batches in a file; and MUTANT-KILL: each mutant is this backend with one thing done
//! wrong, and is caught by the case that it names, in the words of that case. The
//! healthy backend passes the same cases in `tests/conformance.rs`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod altered;
mod files;
mod mutants;
mod overrides;
