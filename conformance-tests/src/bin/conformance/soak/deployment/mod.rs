//! A soak on several servers: a cluster or a master with sentinels, and the faults that
//! happen to it.
//!
//! The servers are processes of this machine. Clients and servers connect only through
//! [`links`]. One fault happens at a time, and the next one only when all replicas are
//! in step again. So with one replica that confirms each write, no fault may lose one.

mod cluster;
mod cluster_view;
mod faults;
mod links;
mod member;
mod sentinel;

use serde::Serialize;

use crate::SuiteResult;
use cluster::Cluster;
pub(super) use faults::{FaultCounts, FaultSchedule, Faults};
use links::Links;
use member::Member;
use sentinel::Watched;

/// How several servers are put together.
#[derive(Serialize, Debug, Clone, Copy, PartialEq, Eq)]
#[serde(rename_all = "lowercase")]
pub(super) enum Kind {
    /// A Redis Cluster of three masters with a replica each.
    Cluster,
    /// A master, two replicas and three sentinels.
    Sentinel,
}

impl Kind {
    /// Starts the servers for a queue whose parts have these names.
    pub(super) fn start(self, parts: &[String]) -> SuiteResult<Box<dyn Deployment>> {
        Ok(match self {
            Self::Cluster => Box::new(Cluster::start(parts)?),
            Self::Sentinel => Box::new(Watched::start()?),
        })
    }
}

/// A fault of the servers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Fault {
    /// The slot of a part moves to another master and back.
    Move,
    /// The master is killed with SIGKILL, and started again when a replica was promoted.
    Kill,
    /// The master is stopped with SIGSTOP, and continues when a replica was promoted.
    Freeze,
    /// The master loses its connections to all other servers, but not to the clients,
    /// until a replica was promoted.
    CutOff,
    /// Each server is killed and started again, one after the other.
    RestartAll,
}

/// Several servers that together serve one queue.
pub(in crate::soak) trait Deployment: Send {
    /// The URL of the queue, without its backend and options.
    fn url(&self) -> String;

    /// The faults that can happen to these servers.
    fn faults(&self) -> &'static [Fault];

    fn members(&mut self) -> &mut [Member];

    fn links(&self) -> &Links;

    /// How many parts of the queue have a master of their own. A fault happens to the
    /// master of one part.
    fn parts(&self) -> usize {
        1
    }

    /// The index of the server that is the master of the part.
    fn master(&self, part: usize) -> SuiteResult<usize>;

    /// Waits until another server is the master of the part.
    fn wait_until_promoted(&self, part: usize, instead_of: usize) -> SuiteResult<()>;

    /// Waits until all servers see each other, and each replica has all writes. Fails
    /// if a client has connected without a proxy.
    fn wait_until_in_step(&self) -> SuiteResult<()>;

    /// Moves the slot of the part to another master and back.
    fn move_to_and_fro(
        &self,
        _part: usize,
        _draw: &mut dyn FnMut(usize) -> usize,
    ) -> SuiteResult<()> {
        Err("these servers have no slots".into())
    }
}
