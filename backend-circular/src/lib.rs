#![doc = include_str!("../README.md")]

mod audit;
mod cancel;
mod config;
mod element;
mod keys;
mod lease;
mod operator;
mod peek;
mod queue;
mod ring;
mod scripts;
mod settle;
mod wait;

pub use config::{CircularConfig, FinishBy, InvalidUrl, RedisConfig};
pub use queue::CircularQueue;

/// What the conformance suite has to know of the inside. No part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::scripts::script_names;
}
