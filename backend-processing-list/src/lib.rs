#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod audit;
mod cancel;
mod capabilities;
mod claim;
mod config;
mod connect;
mod keys;
mod lease;
mod moves;
mod operator;
mod peek;
mod queue;
mod schedules;
mod scripts;
mod session;
mod settle;
mod wait;

pub use config::{InvalidUrl, Mode, ProcessingListConfig, RedisConfig};
pub use connect::connect;
pub use queue::ProcessingListQueue;

/// The internals that the conformance suite needs. Not part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::scripts::script_names;
}
