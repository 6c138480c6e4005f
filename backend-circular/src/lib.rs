#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod audit;
mod cancel;
mod capabilities;
mod config;
mod connect;
mod element;
mod keys;
mod lease;
mod pattern;
mod peek;
mod ring;
mod scripts;
mod wait;

pub use config::{CircularConfig, FinishBy, InvalidUrl, RedisConfig};
pub use connect::connect;
pub use pattern::{Circular, CircularQueue};

/// Internals that the conformance suite needs. Not part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::scripts::script_names;
}
