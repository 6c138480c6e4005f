#![doc = include_str!("../README.md")]

mod audit;
mod cancel;
mod claim;
mod config;
mod database;
mod keys;
mod lease;
mod pattern;
mod peek;
mod pick;
mod purge;
mod recover;
mod scripts;
mod stats;
mod wait;

pub use config::{InvalidUrl, KeyspaceConfig, RedisConfig};
pub use pattern::{Keyspace, KeyspaceQueue};

/// Internals that the conformance suite needs. Not part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::scripts::script_names;
}
