//! What is special to this pattern: see the suite for what all backends share.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod finishing;
mod fixture;
mod pushing;
mod rotating;
mod tampering;
mod waiting;
