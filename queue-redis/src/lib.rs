//! What the Redis backends of relq share: a connection that heals, scripts, keys,
//! the entry codec, errors that say what happened, and a doorbell for waiting.
//!
//! Backends reach Redis through this crate only.

mod config;
mod conn;
mod doorbell;
pub mod entry;
mod error;
mod keys;
mod parts;
mod reply;
mod script;
pub mod shelf;

pub use config::{InvalidUrl, RedisConfig};
pub use conn::{Conn, command};
pub use doorbell::{Doorbell, Ring};
pub use keys::KeyPrefix;
pub use parts::Parts;
pub use reply::Reply;
pub use script::{Call, Script, code_of};
