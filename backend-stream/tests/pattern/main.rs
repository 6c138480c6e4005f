//! Tests of properties that only this pattern has. The conformance suite has the tests
//! that all backends share.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batches;
mod changed_batches;
mod fixture;
mod purging;
mod pushing;
mod room;
mod schedules;
mod tampering;
