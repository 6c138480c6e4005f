#![doc = include_str!("../README.md")]

mod audit;
mod cancel;
mod config;
mod keys;
mod lease;
mod pattern;
mod peek;
mod scripts;
mod wait;

pub use config::{InvalidUrl, RedisConfig, ZsetConfig};
pub use pattern::{Zset, ZsetQueue};

/// Internals that the conformance suite needs. Not part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::scripts::script_names;
}
