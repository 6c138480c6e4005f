#![doc = include_str!("../README.md")]
//!
//! # How
//!
//! All jobs of a queue are in one map behind one lock, and each says where it is, so
//! that none can be in two places. What the contract asks for is in `state`; the rest
//! is plumbing.

mod operator;
mod queue;
mod state;

pub use queue::{MemoryQueue, MemoryStore};
