#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod audit;
mod backend;
mod batch;
mod cancel;
mod capabilities;
mod config;
mod connect;
mod keys;
mod lease;
mod pattern;
mod peek;
mod scripts;
mod streams;
mod wait;

pub use backend::Streams;
pub use config::{InvalidUrl, RedisConfig, StreamConfig};
pub use connect::connect;
pub use pattern::StreamQueue;

/// Internals that the conformance suite needs. Not part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::scripts::script_names;
}
