#![doc = include_str!("../README.md")]

mod audit;
mod cancel;
mod config;
mod keys;
mod lease;
mod operator;
mod peek;
mod queue;
mod scripts;
mod settle;
mod wait;

pub use config::{InvalidUrl, RedisConfig, ZsetConfig};
pub use queue::ZsetQueue;
pub use scripts::script_names;
