#![doc = include_str!("../README.md")]

mod audit;
mod cancel;
mod claim;
mod config;
mod keys;
mod lease;
mod moves;
mod operator;
mod peek;
mod queue;
mod scripts;
mod session;
mod settle;
mod wait;

pub use config::{InvalidUrl, Mode, ProcessingListConfig, RedisConfig};
pub use queue::ProcessingListQueue;

/// What the conformance suite has to know of the inside. No part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::scripts::script_names;
}
