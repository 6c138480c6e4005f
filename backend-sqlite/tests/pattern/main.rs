//! Tests of properties that only a queue in a SQLite file has. The conformance suite
//! has the tests that all backends share.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod audited;
mod crowd;
mod files;
mod fixture;
mod followers;
mod followers_killed;
mod inspecting;
mod killed;
mod locked;
mod memory;
mod neighbour;
mod older_file;
mod pages;
mod processes;
#[cfg(feature = "push-in")]
mod push_in;
mod read_only;
mod refused;
mod results;
mod schedules;
mod steps;
mod waits;
