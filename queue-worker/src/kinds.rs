//! Kinds of job: types of the application, each with a name and a handler of its own.
//!
//! ```text
//!  producer                      store                  worker
//!  SendEmail { .. }  --push-->   header kind=send-email  --> Router --> send_email
//!                                payload {"to":..}                  |
//!  any other client  --push-->   no header "kind"  ---------------> raw handler
//! ```
//!
//! [`job`] says what a kind is, [`enqueue`] pushes its jobs to a queue, [`producer`] pushes
//! them to the queue of their kind, and [`router`] runs the handler of each.
//! [`job_handler`] and [`from_context`] let plain functions be handlers.

mod enqueue;
mod enqueue_error;
mod from_context;
mod job;
mod job_handler;
mod name;
mod paused_kinds;
mod producer;
mod route;
mod router;

pub use enqueue::Enqueue;
pub use enqueue_error::EnqueueError;
pub use from_context::{FromContext, FromRef, State};
pub use job::Job;
pub use job_handler::JobHandler;
pub use paused_kinds::{DEFAULT_PAUSED_DELAY, PausedKinds};
pub use producer::Producer;
pub use router::Router;
