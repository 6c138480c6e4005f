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
pub use scripts::script_names;
