#![doc = include_str!("../README.md")]
#![cfg_attr(docsrs, feature(doc_cfg))]

mod answers;
mod audit;
mod batch;
mod call;
mod claim;
mod config;
mod connection;
mod contents;
mod db_thread;
mod dead;
mod end_poll;
mod extend;
mod failure;
mod followers;
mod give_back;
mod group_commit;
mod headers;
mod inspect;
mod lease;
mod operator;
mod pages;
mod peek;
mod push;
#[cfg(feature = "push-in")]
mod push_in;
mod queue;
mod queues;
mod recover;
mod restore;
mod results;
mod schedules;
mod schema;
mod settle;
mod statements;
mod steer;
mod steps;
mod store;
mod store_files;
mod waiting;
mod wake;

pub use config::{Durability, Location, MissingFile, SqliteConfig};
pub use connection::sqlite_version;
#[cfg(feature = "push-in")]
#[cfg_attr(docsrs, doc(cfg(feature = "push-in")))]
pub use push_in::OpenTransaction;
pub use queue::SqliteQueue;
pub use queues::queues;
#[cfg(feature = "push-in")]
#[cfg_attr(docsrs, doc(cfg(feature = "push-in")))]
pub use rusqlite;

/// Internals for tests that kill processes, cut the power, or try all orders in which
/// statements of several processes can run. Not part of the API.
#[doc(hidden)]
pub mod testing {
    pub use crate::{
        config::{at_each_step, with_statements_replaced},
        contents::Contents,
        steps::{AtStep, Replace, Side, result},
    };
}
