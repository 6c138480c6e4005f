//! What the Redis backends of relq share: a connection that heals, scripts, keys,
//! the entry codec, errors that say what happened, and two ways of waiting.
//!
//! Backends reach Redis through this crate only.

mod config;
mod conn;
mod doorbell;
pub mod entry;
mod error;
mod gather;
mod keys;
mod layout;
mod link;
mod linked;
mod marker;
mod marking;
mod owner;
mod parts;
mod progress;
mod reply;
mod script;
mod server_info;
pub mod shelf;
mod socket;
#[cfg(feature = "tls")]
mod tls;
mod waiting;

pub use config::{InvalidTimeout, InvalidUrl, RedisConfig};
pub use conn::{Conn, command};
pub use doorbell::{Doorbell, Ring};
pub use gather::Gather;
pub use keys::KeyPrefix;
pub use marker::Marker;
pub use marking::{MarkedQueue, QueuesPage, Seen, mark, marked_queues, see};
pub use owner::Owner;
pub use parts::Parts;
pub use redis::Cmd;
pub use reply::Reply;
pub use script::{Call, Script, code_of};
pub use waiting::WaitingConn;
