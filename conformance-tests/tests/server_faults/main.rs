//! What happens to a real server, and to those who wait at it: power cut between any
//! two of its writes, a replica promoted, outages, connections killed.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod append_only_file;
mod connections;
mod outages;
mod power;
mod replica;
mod stage;
