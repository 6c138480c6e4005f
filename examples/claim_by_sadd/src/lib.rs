#![doc = include_str!("../README.md")]

mod audit;
mod keys;
mod lease;
mod pattern;
mod peek;
mod scripts;

pub use pattern::{BySadd, BySaddConfig, BySaddQueue};

/// Internals that the conformance suite needs. Not part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::scripts::script_names;
}
