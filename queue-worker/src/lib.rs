//! A worker on any reliable queue: it claims jobs, runs a handler on each, and settles
//! them.
//!
//! ```
//! use std::sync::Arc;
//! use relq_worker::{Failure, JobContext, Worker, WorkerError};
//!
//! async fn send(job: JobContext) -> Result<(), Failure> {
//!     let address = std::str::from_utf8(job.payload())?;
//!     println!("to {address}, attempt {}", job.attempt());
//!     Ok(())
//! }
//!
//! # async fn example(
//! #     queue: Arc<dyn relq_core::ReliableQueue>,
//! # ) -> Result<(), WorkerError> {
//! let summary = Worker::new(queue).handle_signals().run(send).await?;
//! println!("{} done", summary.done);
//! # Ok(())
//! # }
//! ```
//!
//! With the feature `json`, a [`Router`] runs a handler for each kind of job. With the
//! feature `tower`, [`layered`] puts layers of tower around a handler.
//!
//! # What runs
//!
//! ```text
//!             own thread and connection        any task of the runtime
//!            +-------------------------+      +----------------------+
//!            | heartbeat: extends what |      | reaper: recover at a |
//!            | is held, every third of |      | jittered interval    |
//!            | its lease               |      +----------------------+
//!            +-------------------------+
//!                 ^ held leases  | lost, cancelled: token fires
//!                 |              v
//!  claim        +------------------+  start    +-------------------+
//! <-----------> | claim loop: owns | --------> | slots: a task for |
//!  settle       | slots and what   | <-------- | each handler      |
//!               | is not settled   |  ended    +-------------------+
//!               +------------------+
//! ```
//!
//! One loop owns all mutable state, so that no job needs a lock. It takes free slots
//! before it claims. It sends the settlements that gathered during its last call
//! together with the next claim.
//!
//! A worker on [several queues](Queues) has a claim loop, slots and a reaper for each
//! queue. All share the thread of the heartbeats, and the number of slots.
//!
//! # What is promised
//!
//! A job is acknowledged after its handler returned `Ok`, and in no other case. An
//! error, a panic, a time-out and an unreadable payload are failed attempts whose
//! message is kept. A job whose lease was lost is not settled (R7). A job whose lease
//! may have expired by the worker's clock is not started (R6): it is given back, and
//! the worker holds fewer jobs at once until replies come in time again. A job may run
//! more than once: after a crash, a shutdown that cut its handler off, a lost lease, a lost
//! reply or a redrive. Handlers must tolerate this, or an
//! [`already_done`](Worker::already_done) check must find finished jobs.
#![cfg_attr(docsrs, feature(doc_cfg))]

mod abort_on_drop;
mod already_done;
mod attempt;
mod attempt_record;
mod backoff;
mod calls;
mod claim_loop;
mod claim_size;
mod context;
mod drain;
mod error;
mod failure;
mod handler;
mod heartbeat;
mod held;
#[cfg(feature = "json")]
mod json;
#[cfg(feature = "json")]
mod kinds;
mod lease_clock;
pub mod observer;
mod observers;
mod panics;
mod progress;
mod queues;
mod readiness;
mod reaper;
mod retry;
mod run;
mod serves;
#[cfg(feature = "tower")]
mod service;
mod settings;
mod settling;
mod several;
mod shutdown;
mod slot_pool;
mod slots;
mod span;
mod state;
mod timing;
mod until_empty;
mod worker;

pub use tokio_util::sync::CancellationToken;

pub use already_done::AlreadyDone;
pub use attempt_record::{ProgressError, SetResultError};
pub use context::{Cancellation, JobContext, KIND_HEADER, MAX_KIND_BYTES};
pub use error::{InvalidSetting, WorkerError};
pub use failure::Failure;
pub use handler::Handler;
#[cfg(feature = "json")]
pub use json::{Json, json, json_job};
#[cfg(feature = "json")]
pub use kinds::{
    DEFAULT_PAUSED_DELAY, Enqueue, EnqueueError, FromContext, FromRef, Job, JobHandler,
    PausedKinds, Producer, Router, State,
};
pub use progress::{Progress, Summary};
pub use queues::{Queues, WorkerQueue};
pub use relq_core::limits::MAX_ERROR_BYTES;
pub use retry::RetryPolicy;
#[cfg(feature = "tower")]
pub use service::{HandlerService, ServiceHandler, SharedService, layered, service};
pub use settings::{
    DEFAULT_CONCURRENCY, DEFAULT_GIVE_UP_AFTER, DEFAULT_GRACE, DEFAULT_LEASE,
    LONGEST_REAP_INTERVAL, LONGEST_WAIT, SHORTEST_REAP_INTERVAL,
};
pub use state::WorkerState;
pub use worker::Worker;
