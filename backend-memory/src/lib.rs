#![doc = include_str!("../README.md")]
//!
//! # How
//!
//! All jobs of a queue are in one map behind one lock, and each job holds its state, so
//! that no job can be in two states. The module `state` implements the contract; the
//! other modules only call it.

mod followers;
mod inspect;
mod job;
mod operator;
mod queue;
mod restore;
mod results;
mod schedules;
mod state;

pub use queue::{MemoryQueue, MemoryStore};
