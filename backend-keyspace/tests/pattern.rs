//! Tests of properties that only this pattern has. The conformance suite has the tests
//! that all backends share.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "pattern/cost.rs"]
mod cost;
#[path = "pattern/database.rs"]
mod database;
#[path = "pattern/finding.rs"]
mod finding;
#[path = "pattern/fixture.rs"]
mod fixture;
#[path = "pattern/life.rs"]
mod life;
#[path = "pattern/names.rs"]
mod names;
