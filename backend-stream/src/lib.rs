#![doc = include_str!("../README.md")]

mod audit;
mod batch;
mod cancel;
mod config;
mod keys;
mod lease;
mod pattern;
mod peek;
mod scripts;
mod streams;
mod wait;

pub use config::{InvalidUrl, RedisConfig, StreamConfig};
pub use pattern::{StreamQueue, Streams};

/// The internals that the conformance suite needs. Not part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::scripts::script_names;
}
