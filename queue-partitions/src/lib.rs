#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod batches;
mod claim;
mod fair_turn;
mod health;
mod joined;
mod operator;
mod push;
mod queue;
mod receipt;
mod recover;
mod route;
mod settle;
mod wait;
mod write_check;

pub use fair_turn::FairTurn;
pub use queue::{Partitioned, PartitionedQueue};
pub use route::{PartOf, fnv1a};
pub use write_check::BeforeFirstWrite;
