//! Tests of what is special to a queue in a SQLite file. The conformance suite has the
//! tests that all backends share.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod crowd;
mod files;
mod fixture;
mod killed;
mod locked;
mod memory;
mod pages;
mod processes;
mod read_only;
