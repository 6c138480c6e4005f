//! What is special to this pattern: see the suite for what all backends share.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod batches;
mod fixture;
mod pushing;
mod room;
mod tampering;
