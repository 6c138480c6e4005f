//! The suite that tests whether a backend of relq is reliable.
//!
//! # Plugging in
//!
//! A backend's author writes one [`Subject`] and a `main` of one line, and gets one
//! named test for each case under `cargo test`. This is a complete
//! `tests/conformance.rs`, of a test target with `harness = false`:
//!
//! ```no_run
//! use std::sync::Arc;
//! use relq_conformance::{Profile, Subject, Tests, async_trait};
//! use relq_core::{Error, Queue, QueueName, environment::Environment};
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
//! fn main() -> std::process::ExitCode {
//!     Tests::conformance::<Mine>(Profile::Redis).run() // or Embedded
//! }
//! ```
//!
//! The suite chooses the address. For a backend on Redis it gives each test a
//! private `redis-server`, with a [fault proxy](proxy) before it, and each actor its own
//! endpoint. For an embedded backend it creates a private directory. So
//! the suite can inject a fault at any command of a backend without knowing its code.
//! `relq-memory` is a complete example of a backend outside the workspace.
//!
//! # What is tested
//!
//! - **The cases** ([`cases`]). Each case has a private store, tests one promise, and
//!   names the rules of the contract that it tests. After each case an audit must find
//!   every job in exactly one place, and no background task may have panicked.
//! - **Every step with one fault** ([`sweep`]), for a backend on Redis. Each call of
//!   the traits, and a whole worker, runs with each fault at each of its commands: the
//!   actor dies before or after the command, its last command runs late, the connection
//!   breaks, or the server refuses, forgets its scripts or is full. In
//!   [`processes`](sweep::processes), the same is done for a backend without a server,
//!   by killing processes. This needs a hook at its steps ([`Subject::processes`]), and
//!   runs when it is asked for: `-- --ignored steps`.
//! - **Random sequences** ([`spec`]) of operations by several actors, with faults. A
//!   reference model checks every answer. Other sequences are not drawn: they combine
//!   each option of a job with each other option, each state and each call.
//! - **Every order of the commands** of two or three actors ([`explore`]), with time that
//!   passes and a death at any command. For an embedded backend with a hook at its
//!   statements, it is every order of these. `conformance explore` does this, and draws a
//!   run that breaks a rule.
//! - **Faults of the server** ([`server_faults`](sweep::server_faults)), for a backend
//!   on Redis, in a separate test: power cuts after any write, promotion of a replica,
//!   outages, killed connections, forgotten scripts, full memory, and keys of another
//!   type in the way.
//! - **Batches**, for a backend that supports them: the cases of the topic `batches`,
//!   their calls in the random sequences, and every step of these calls. The job that a
//!   completion pushes shows that each batch completed once. `conformance soak-batches`
//!   kills workers and the server while two batches of unequal size and priority run.
//! - **Schedules**, for a backend that supports them: the cases of the topic `schedules`,
//!   their calls in the random sequences, every step of these calls, and every order of
//!   the commands of two schedulers. A tick and its job are stored together or not at
//!   all, and no tick pushes its job twice.
//! - **Real time** (the module `bare` of a backend's tests): some cases run again on a
//!   server without a proxy.
//!
//! # What is complete and what is bounded
//!
//! The test of every step with one fault is complete for its acts. It counts
//! the steps of an act and injects a fault at each, so it covers a new command of a
//! backend without a change. A script that no act reaches is a failure (COVERAGE), and
//! so is a fault that did not fire (FAULT-FIRED). Acts that wait and whole workers do
//! not send the same commands in each run: every command gets a fault, but not every
//! order of commands. Only one fault fires in a run. Every order of commands is tried in
//! the scenes of [`explore`], and in no other test. The cases are examples, not
//! proofs. No run is larger than a few thousand jobs.
//!
//! No case passes by not running. If a case or act needs an option that the backend
//! does not support, a probe runs in its place. The probe checks that the option is
//! refused and nothing is stored. A case that does not apply to the kind of store
//! ([`Profile`]) is shown as ignored, with the reason, and so are the cases and acts that
//! need more of an embedded backend than its subject has.
//!
//! A backend is tested against the class that it declares, and against no stronger one.
//! With a declared order, jobs that were never delivered come in the order of the
//! pushes. Jobs that return come first (`Fifo`), or wait their turn (`Rotating`).
//! Without a declared order, the cases of order are listed as unsupported, and each job
//! must come once. The same holds for order and priorities of a queue of several parts
//! (`ByPart`). Where one heartbeat extends all leases of a worker, no job has a
//! lease of its own, and a job that the heartbeat does not name is given back. On a
//! ring, a claim may find fewer jobs than there are until the ring has made one full
//! rotation.
//!
//! # Time
//!
//! No case depends on lucky timing. Behind the proxy the suite controls the time: the
//! proxy replies to `TIME` from a [`VirtualClock`](proxy::VirtualClock), inside scripts
//! too, and the actors' clocks and sleeps use the same clock. It stands still until a
//! case moves it or every actor waits. An embedded store gets a running clock that the
//! suite can move forward, and stop where times must be equal. While a claim must be
//! woken, no sleep by that clock ends, so a claim that only polls fails. Keys with a time
//! to live follow the server's own clock: a backend fails if it needs them for more than
//! cleaning up.
//!
//! Known bugs of other queues, each with the case that would find it, are listed in
//! [`hazards`].
#![cfg_attr(docsrs, feature(doc_cfg))]
#![cfg_attr(test, allow(dead_code, reason = "the cases are not compiled"))]

#[macro_use]
mod assert;

pub mod acl;
mod case;
// The unit tests of this library run no case. Compiling the cases would take most of their
// time.
#[cfg(not(test))]
mod cases;
pub mod explore;
pub mod figures;
mod harness;
#[doc = include_str!("../HAZARDS.md")]
pub mod hazards {}
#[cfg(feature = "own")]
pub mod own;
pub mod report;
pub mod spec;
mod subject;
pub mod sweep;
mod tests;

pub use async_trait::async_trait;
pub use case::{Case, Scope, cases};
pub use harness::{
    overrides,
    probe::Need,
    room::Room,
    rounds::assert_within,
    run::{commands, judge_case, judge_case_within, run},
};
pub use relq_fault_proxy::{proxy, server};
pub use subject::{Profile, Records, Subject};
pub use tests::Tests;
