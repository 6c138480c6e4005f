#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod audit;
mod backend;
mod cancel;
mod capabilities;
mod claim;
mod config;
mod connect;
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
pub use connect::connect;
pub use pattern::KeyspaceQueue;

/// Internals that the conformance suite needs. Not part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::scripts::script_names;
}
