//! The parts that the Redis backends of relq share: a connection that reconnects by
//! itself, scripts, keys, the entry codec, errors that say whether a command happened,
//! two ways of waiting, and a queue that is built from a pattern.
//!
//! Backends reach Redis through this crate only. A backend is a
//! [`Pattern`](pattern::Pattern), which defines how ready and leased jobs are stored.
//! [`RedisQueue`] does the rest.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod bookkeeping;
mod config;
mod conn;
mod end_listener;
pub mod entry;
mod error;
mod external_sort;
mod glob;
mod keys;
mod layout;
mod library;
mod link;
mod marker;
mod marking;
mod notifier;
mod opening;
mod owner;
mod partial_effect;
mod partition;
pub mod pattern;
mod progress;
mod push_batcher;
mod queue;
mod queues;
mod reply;
mod script;
mod server_check;
mod server_clock;
mod server_info;
mod socket;
mod timed_id;
#[cfg(feature = "tls")]
mod tls;
mod topology;
mod url_option;
mod waiting;
mod wrong_type;

pub use config::{InvalidTimeout, InvalidUrl, RedisConfig};
pub use conn::{Conn, all_steps, command};
pub use glob::escape_glob;
pub use keys::KeyPrefix;
pub use library::{Library, LibraryFile};
pub use marker::Marker;
pub use marking::{Seen, mark, mark_if_new, see, unmark};
pub use notifier::{Notification, Notifier};
pub use owner::Owner;
pub use partial_effect::PartialEffect;
pub use partition::Partition;
pub use push_batcher::PushBatcher;
pub use queue::{Connecting, RedisQueue};
pub use queues::{MarkedQueue, QueuesPage, marked_queues};
pub use redis::Cmd;
pub use reply::{Parts, Reply};
pub use script::{Call, Script, code_of, detail_of};
pub use server_check::{ClockDifference, ServerCheck, ServerProgram, check_server};
pub use waiting::WaitingConn;
