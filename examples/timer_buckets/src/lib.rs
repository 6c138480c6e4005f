#![doc = include_str!("../README.md")]

mod audit;
mod cancel;
mod keys;
mod lease;
mod pattern;
mod peek;
mod scripts;

pub use pattern::{TimerBuckets, TimerBucketsConfig, TimerBucketsQueue};

/// Internals that the conformance suite needs. Not part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::scripts::script_names;
}
