//! Tests of properties that only this pattern has. The conformance suite has the tests
//! that all backends share.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "pattern/cancelling.rs"]
mod cancelling;
#[path = "pattern/fixture.rs"]
mod fixture;
#[path = "pattern/moves.rs"]
mod moves;
#[path = "pattern/mutants.rs"]
mod mutants;
#[path = "pattern/sessions.rs"]
mod sessions;
#[path = "pattern/stamps.rs"]
mod stamps;
#[path = "pattern/traps.rs"]
mod traps;
