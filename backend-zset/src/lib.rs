#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod audit;
mod backend;
mod cancel;
mod capabilities;
mod config;
mod connect;
mod keys;
mod lease;
mod pattern;
mod peek;
mod scripts;
mod wait;

pub use backend::Zset;
pub use config::{InvalidUrl, RedisConfig, ZsetConfig};
pub use connect::connect;
pub use pattern::ZsetQueue;

/// Internals that the conformance suite needs. Not part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::scripts::script_names;
}
