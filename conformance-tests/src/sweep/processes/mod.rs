//! Every step, one fault: [depth 1](crate::sweep) for a backend that has no server.
//!
//! ```text
//!  1  prepare a folder, by an actor that no fault hits; copy its files
//!  2  a child process acts on a copy; its steps are counted, no fault yet
//!  3  for each step, before it and after it: a child acts on a copy anew, stops
//!     there and is killed (SIGKILL, or the system's equivalent)
//!  4  for each step and each code that a store can fail with: an actor in this
//!     process acts on a copy, and that step fails
//!  5  for each step: an actor freezes there, survivors take over, it continues
//!  6  once: an actor acts while another process keeps the store locked
//!  7  after each: let every lease and delay end, recover, drain, and judge as in
//!     [`steps`](crate::sweep)
//! ```
//!
//! A step is the unit that a backend reports: a statement, or the begin or end of a
//! transaction. The backend's configuration takes a [`Watch`] and calls it before and
//! after each step.
//!
//! The child is the same program as its parent, started again. Its database thread
//! stands still at the step while the parent kills it, so the kill hits exactly that
//! step. The child needs no signal handler, so the suite runs wherever processes can be
//! killed.

mod act;
mod child;
mod drive;
mod frozen;
mod killed;
mod locked;
mod order;
mod refused;
mod start;

use std::{path::PathBuf, sync::Arc};

use relq_core::{Error, Queue, QueueName, environment::Environment};

pub use child::live;
pub use drive::every_step;
pub(crate) use drive::one_act;

use crate::sweep::BoxFuture;

/// The side of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Before the step: none of its effects exist yet.
    Before,
    /// After the step: all of its effects exist.
    After,
}

/// Called by the backend before and after each of its steps, with the step's text. If
/// the call before a step returns an error, the step must fail with that code and have
/// no effect.
pub type Watch = Arc<dyn Fn(Side, &str) -> Result<(), i32> + Send + Sync>;

/// Opens, as an actor of its own, the queue that is kept in a folder. The folder may be
/// empty.
pub type Open = fn(PathBuf, QueueName, Environment, Option<Watch>) -> Opening;

/// A queue that is being opened.
pub type Opening = BoxFuture<'static, Result<Arc<dyn Queue>, Error>>;

/// A backend that keeps its jobs in a folder.
///
/// When a call has returned, its effects must be in the folder's files: they are copied
/// while the queue is open and no call runs. A call must wait at most a few
/// milliseconds for a lock that another actor holds.
#[derive(Debug, Clone, Copy)]
pub struct Embedded {
    /// How a child is started.
    pub child: Child,
    /// Opens an actor.
    pub open: Open,
    /// Returns a one-line name for a step, by its text, for the tally.
    pub label: fn(&str) -> String,
    /// The errors that its steps can fail with.
    pub refusals: &'static [Refusal],
    /// Whether the scenario of that name is run.
    pub chosen: fn(&str) -> bool,
}

/// How this program becomes a child when it is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Child {
    /// Runs the test of that full name, which must call [`every_step`].
    Test(&'static str),
    /// Runs the program with these arguments, for which it must call [`live`].
    Program(&'static [&'static str]),
}

/// A way in which a step of the store can fail.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    /// The failure's name in the tally.
    pub name: &'static str,
    /// The code that the watch returns.
    pub code: i32,
    /// Whether the error reports this failure correctly.
    pub is_told: fn(&Error) -> bool,
}
