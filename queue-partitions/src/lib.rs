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
/// The hash that assigns texts to parts. Clients in other languages can compute it to push to
/// the right part.
pub use relq_core::fnv1a;
pub use route::PartOf;
pub use write_check::BeforeFirstWrite;
