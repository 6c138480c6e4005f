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
pub use scripts::script_names;
