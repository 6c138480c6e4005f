//! The proxy: a proxy before a Redis server at which every command can be hit by a fault.
//!
//! ```text
//!  actor "worker-1" ── unix:///…/0.sock ─┐
//!                                        ├─ proxy ── one connection each ── server
//!  actor "reaper"   ── unix:///…/1.sock ─┘    │
//!                                             └─ plan, record, clock
//! ```
//!
//! A **step** is one command on its way to the server; MULTI to EXEC is one, at its
//! EXEC, and so is a script. What touches no key (HELLO, AUTH, SELECT, CLIENT,
//! SCRIPT, PING, INFO, COMMAND, TIME) is no step. Steps are numbered from 1 for each
//! actor, over all its connections. A [`Fault`] is planned for a step of an actor and
//! fires when it comes; or steps [park](FaultProxy::park) at the proxy, and the suite decides
//! which goes on and what hits it.
//!
//! Bytes pass unchanged in both directions, but where time is in them:
//!
//! - `TIME` is answered from the [`VirtualClock`], inside scripts too. In a
//!   transaction it is the time when the command was queued.
//! - A blocking command is sent without its limit. When the clock has passed it, the
//!   proxy has the server answer that the time is over.
//!
//! What the proxy cannot carry it refuses: MONITOR, replication, CLIENT REPLY, and
//! functions, in which it could not keep the time. Keys with a time to live still go
//! by the server's own clock; a [`VirtualClock`] starts far in the future, so that
//! none set by its time ends during a run.
//!
//! **Death.** When an actor dies the proxy closes all its connections, waits until
//! the server has closed its ends, and only then is the actor
//! [gone](Endpoint::gone): what it had sent has run, or never will, but for what was
//! kept as a ghost. What ran on one connection is a prefix of what was sent on it.
//! The suite ends the actor's own tasks at that moment, by dropping their runtime.

mod actor;
mod afterlife;
mod blocking;
mod clock;
mod command;
mod connection;
mod frame;
mod guarded;
mod inbound;
mod inject;
mod ledger;
mod outbound;
mod patch;
mod proxy;
mod record;
mod reply;
mod request;
mod rewrite;
mod script;
mod server;
mod stream;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
mod upstream;
mod waiting;
mod wire;

pub use clock::VirtualClock;
pub use guarded::Guarded;
pub use patch::Fitted;
pub use proxy::{Endpoint, FaultProxy, Transport};
pub use record::{Behind, Fate, Fault, StepRecord, When};
pub(crate) use reply::is_error;
#[doc(hidden)]
pub use reply::replies_in;
#[doc(hidden)]
pub use request::requests_in;
pub use stream::Address;
pub(crate) use upstream::Upstream;
