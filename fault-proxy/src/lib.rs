//! What tests on Redis need around their code: private servers, and a proxy before a
//! server that injects a fault at any command.
//!
//! - [`server`] starts a `redis-server`, or uses the one that it is given, and ends it with
//!   the test.
//! - [`proxy`] stands between clients and a server. It injects a fault at a chosen command,
//!   records the commands, and replies to `TIME` from a clock of the test.
//!
//! It knows nothing of queues. relq's conformance suite is built on it.
#![cfg_attr(docsrs, feature(doc_cfg))]

pub mod proxy;
pub mod server;
