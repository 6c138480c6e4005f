//! A proxy before a Redis server that can inject a fault at every command.
//!
//! ```text
//!  actor "worker-1" ── unix:///…/0.sock ─┐
//!                                        ├─ proxy ── one connection each ── server
//!  actor "reaper"   ── unix:///…/1.sock ─┘    │
//!                                             └─ plan, record, clock
//! ```
//!
//! A **step** is one command on its way to the server. A transaction from MULTI to EXEC
//! is one step, at its EXEC, and a script call is one step. Commands that touch no key
//! (HELLO, AUTH, SELECT, CLIENT, SCRIPT, PING, INFO, COMMAND, TIME) are not steps.
//! Steps are numbered from 1 for each actor, over all of its connections. A [`Fault`]
//! is planned for a step of an actor and fires when the step arrives. Alternatively
//! steps [park](FaultProxy::park) at the proxy, and the suite decides which step goes
//! on and which fault hits it.
//!
//! Bytes pass unchanged in both directions, with two exceptions:
//!
//! - The proxy replies to `TIME` from the [`VirtualClock`], inside scripts too. In a
//!   transaction it is the time when the command was queued.
//! - A blocking command is sent without its limit. When the clock has passed the limit,
//!   the proxy makes the server reply with a time-out.
//!
//! The proxy refuses commands that it cannot carry: MONITOR, replication, CLIENT REPLY,
//! and functions, in which it could not replace the time. Keys with a time to live
//! still expire by the server's own clock. A [`VirtualClock`] starts far in the future,
//! so no expiry time set by it passes during a run.
//!
//! **Death.** When an actor dies, the proxy closes all its connections and waits until
//! the server has closed its ends. Only then is the actor [gone](Endpoint::gone): each
//! command that it had sent has run or will never run, except for commands kept as
//! ghosts. The commands that ran on one connection are a prefix of those sent on it. At
//! that moment the suite ends the actor's own tasks by dropping their runtime.

mod actor;
mod blocking;
mod chance;
mod clock;
mod command;
mod connection;
mod dead_connections;
mod endpoint;
mod fault_proxy;
mod frame;
mod gate;
mod guarded;
mod inbound;
mod inject;
mod ledger;
mod outbound;
mod patch;
mod record;
mod reply;
mod request;
mod rewrite;
mod script;
mod server;
mod shared;
mod stream;
#[cfg_attr(not(feature = "tls"), path = "no_tls.rs")]
mod tls;
mod traffic;
mod upstream;
mod waiting;
mod wire;

pub use chance::Draws;
pub use clock::VirtualClock;
pub use endpoint::{Endpoint, Transport};
pub use fault_proxy::FaultProxy;
pub use guarded::Guarded;
pub use patch::Fitted;
pub use record::{Behind, Fate, Fault, StepRecord, When};
pub use reply::is_error;
#[doc(hidden)]
pub use reply::replies_in;
pub use request::Request;
#[doc(hidden)]
pub use request::requests_in;
pub use shared::HeldCommand;
pub use stream::Address;
pub use upstream::Upstream;
