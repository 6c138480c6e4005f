//! Tests of properties that only this pattern has. The conformance suite has the tests
//! that all backends share.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod costs;
mod damage;
mod fixture;
mod pushing;
mod settling;
mod waiting;
