//! The suite that proves a backend of relq reliable.
//!
//! # Plugging in
//!
//! A backend's author writes one [`Subject`] and one line, and gets one named test a
//! case under `cargo test`. This is a whole `tests/conformance.rs`:
//!
//! ```
//! use std::sync::Arc;
//! use relq_conformance::{Subject, async_trait};
//! use relq_core::{Environment, Error, Queue, QueueName};
//! # async fn open(
//! #     _: &str,
//! #     _: QueueName,
//! #     _: Environment,
//! # ) -> Result<Arc<dyn Queue>, Error> { panic!("any backend's own") }
//!
//! #[derive(Default)]
//! struct Mine;
//!
//! #[async_trait]
//! impl Subject for Mine {
//!     async fn connect(
//!         &self,
//!         endpoint: &str,
//!         queue: &QueueName,
//!         environment: &Environment,
//!     ) -> Result<Arc<dyn Queue>, Error> {
//!         open(endpoint, queue.clone(), environment.clone()).await
//!     }
//! }
//!
//! relq_conformance::conformance!(Mine, redis); // or embedded
//! # fn main() {}
//! ```
//!
//! The suite owns the address. For a backend on Redis it starts a private
//! `redis-server` for each test, with a [proxy](fault) before it, and hands each actor
//! an endpoint of its own; for an embedded one it makes a private directory. So a
//! black box can be hit by a fault at any command. `relq-memory` is a whole backend
//! outside the workspace.
//!
//! # What is judged
//!
//! - **The cases** ([`cases`]). Each has a private store, judges one promise, and
//!   names the rules of the contract that it judges. After each an audit must find
//!   every job in exactly one place, and nothing may have panicked in the background.
//! - **Every step, one fault** ([`steps`]), for a backend on Redis. Each call of the
//!   traits, and a whole worker, is hit by a fault at each command by each fault: the actor
//!   dies before or after it, its last command runs late, the connection breaks, the
//!   server refuses, forgets its scripts or is full. [`processes`] is the same for a
//!   backend without a server, by killed processes.
//! - **Random sequences** ([`model`]) of operations by several actors, with faults, held
//!   against a reference.
//! - **Faults of the server** ([`mod@server_faults`]), for a backend on Redis, in a
//!   test of their own: power cut after any write, a replica promoted, outages,
//!   connections killed, scripts forgotten, memory full, keys of another type in the
//!   way.
//! - **Batches**, for a backend that supports them: the cases of the topic `batches`, with
//!   random sequences of their own, and every step of what is done with them. That each
//!   completed once is seen by the job that its completion pushes. `conformance
//!   soak-batches` kills workers, and the server, over two of unequal size and priority.
//! - **Real time** (the module `bare` of a backend's tests): some cases once more on a
//!   server with no proxy before it.
//!
//! # What is complete and what is bounded
//!
//! Depth 1 is complete by construction for its acts: it counts the steps of an act and
//! strikes each, so a command that a backend sends from tomorrow on is hit by a fault
//! tomorrow. A script that no act reaches is a failure (COVERAGE), and so is a fault
//! that did not fire (FAULT-FIRED). Acts that wait and whole workers do not send the
//! same commands in each run: each command is hit by a fault, not each order of them. One
//! fault strikes a run, not two; the cases are examples, not proofs; and no run is
//! larger than some thousand jobs.
//!
//! Nothing passes by not running. A case or act that needs an option that the backend
//! does not support is replaced by a probe that the option is refused and nothing
//! stored. A case that does not concern the kind of store ([`Profile`]) is shown as
//! ignored, with the reason.
//!
//! A class is judged as it is declared, by what it promises and by no more. Where an
//! order is declared, what was never delivered comes in the order of the pushes; what
//! comes back is first (`Fifo`) or waits its turn (`Rotating`). Where none is, the cases
//! of order are listed as unsupported, and each job has to come once. Where all jobs of a
//! worker live by its heartbeat, no job has a lease of its own, and what a heartbeat
//! does not name is given back. Where a ring has to come round, a claim may find less
//! than there is, for one turn.
//!
//! # Time
//!
//! No case relies on luck with time. Behind the proxy time is the suite's: `TIME` is
//! answered from a [`VirtualClock`](fault::VirtualClock), inside scripts too, and the
//! actors' clocks and sleeps are the same. It stands still until a case moves it or
//! everybody waits. An embedded store gets a clock that runs and that the suite moves
//! on. Keys with a time to live go by the server's own clock: a backend that relies on
//! them for more than tidiness does not pass.
//!
//! The bugs that other queues had, each with the case that names it, are in
//! [`hazards`].

pub mod acl;
mod bad_input;
mod batch_cases;
mod batches;
mod cancel_safety;
mod cases;
mod checks;
mod class;
mod clock;
mod clocks;
#[cfg(feature = "containers")]
mod containers;
mod dead_letters;
mod delay;
mod environment;
mod expiry;
pub mod fault;
mod stats;
#[doc = include_str!("../HAZARDS.md")]
pub mod hazards {}
mod idempotence;
mod isolation;
mod leases;
mod line;
pub mod model;
mod no_loss;
mod one_holder;
mod operator;
mod order;
pub mod overrides;
#[cfg(feature = "own")]
pub mod own;
mod owner;
mod parallel;
mod probe;
pub mod processes;
mod races;
mod ready_order;
mod recovery;
mod registry;
pub mod report;
mod room;
mod run;
mod runtime;
pub mod server;
pub mod server_faults;
mod settle_and_claim;
#[cfg(feature = "own")]
pub mod sqlite;
mod stalled;
pub mod steps;
mod store;
mod store_site;
mod subject;
mod test_lists;
mod test_macros;
mod unique;
mod unique_expiry;
mod unique_moves;
mod waiting;
mod worker_release;

pub use async_trait::async_trait;
pub use probe::Need;
pub use registry::{Case, Scope, cases};
pub use room::Room;
pub(crate) use run::caught;
pub use run::{commands, judge_case, judge_case_within, run};
pub use subject::{Profile, Subject};
