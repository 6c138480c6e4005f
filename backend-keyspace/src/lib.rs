#![doc = include_str!("../README.md")]

mod audit;
mod backend;
mod cancel;
mod capabilities;
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

pub use backend::Keyspace;
pub use config::{InvalidUrl, KeyspaceConfig, RedisConfig};
pub use pattern::KeyspaceQueue;

/// What the conformance suite has to know of the inside. No part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::scripts::script_names;
}
