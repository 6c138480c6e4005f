//! A queue on several servers: behind sentinels, and in a cluster.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod cluster;
mod fixture;
mod replicas;
mod sentinel;
mod silencer;
mod steps;
