//! Where the servers of a queue are, and how a new connection finds the right one.
//!
//! ```text
//!  redis://HOST                    that server
//!  redis-sentinel://H1,H2/NAME     the master that the sentinels name, if its ROLE
//!                                  agrees
//!  redis-cluster://H1,H2,H3        the master of the queue's slot, by CLUSTER SLOTS
//! ```
//!
//! A connection is an ordinary one to one server in each form, because all keys of a
//! queue are in one slot (R19). Each new connection finds its server again, so a
//! client follows a fail-over when its connection breaks, when the server refuses a
//! write, or when a sentinel announces another master.

mod address;
mod cluster;
mod redirect;
mod sentinel;
mod slot;
mod switched;
mod url;

use std::sync::Arc;

pub(crate) use self::{
    address::Address,
    cluster::Cluster,
    redirect::{Patience, Redirect, until_settled},
    sentinel::Sentinels,
    slot::slot_of,
    url::read,
};

/// Where the servers of a queue are.
#[derive(Debug, Clone)]
pub(crate) enum Topology {
    /// One server, whose address is in the configuration.
    Server,
    /// A server and its replicas, which sentinels watch.
    Sentinels(Arc<Sentinels>),
    /// The masters of a Redis Cluster, each with some of the slots.
    Cluster(Arc<Cluster>),
}
