//! Every step, one death: the first depth for a backend that has no server.
//!
//! ```text
//!  1  prepare a folder, by an actor that nothing happens to; copy its files
//!  2  a child process acts on a copy; its steps are counted, no fault yet
//!  3  for each step, before it and after it: a child acts on a copy anew, stops
//!     there and is killed (SIGKILL, or what the system has in its place)
//!  4  for each step and each code that a store can fail with: an actor in this
//!     process acts on a copy, and that step fails
//!  5  for each step: an actor freezes there, survivors take over, it goes on
//!  6  once: an actor acts while another process keeps the store locked
//!  7  after each: let every lease and delay end, recover, drain, and judge as in
//!     [`steps`](crate::steps)
//! ```
//!
//! A step is what the backend calls one: a statement, or a transaction's begin or
//! end. The backend's configuration takes a [`Watch`] that it calls before and after
//! each.
//!
//! The child is the parent's own program, started again. Its database thread stands
//! still at the step while the parent kills it, so the death falls exactly there;
//! and it needs no signal of its own, so the suite runs wherever processes can be
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

use relq_core::{Environment, Error, Queue, QueueName};

pub use child::live;
pub use drive::every_step;
pub(crate) use drive::one_act;

use crate::steps::BoxFuture;

/// On which side of a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Nothing of it happened yet.
    Before,
    /// All of it happened.
    After,
}

/// What the backend calls before and after each of its steps, with the step's text.
/// An error before it is the code with which the step is to fail, undone.
pub type Watch = Arc<dyn Fn(Side, &str) -> Result<(), i32> + Send + Sync>;

/// Opens the queue that is kept in a folder, which may be empty, as an actor of its
/// own.
pub type Open = fn(PathBuf, QueueName, Environment, Option<Watch>) -> Opening;

/// A queue on its way.
pub type Opening = BoxFuture<'static, Result<Arc<dyn Queue>, Error>>;

/// A backend that keeps its jobs in a folder.
///
/// What it has answered must be in the folder's files at once: they are copied while
/// the queue is open and nobody calls. A lock that another actor holds must be waited
/// for a few milliseconds at most.
#[derive(Debug, Clone, Copy)]
pub struct Embedded {
    /// What is started again for each child.
    pub child: Child,
    /// Opens an actor.
    pub open: Open,
    /// Names a step in the tally, in one line, by its text.
    pub label: fn(&str) -> String,
    /// What its steps can fail with.
    pub refusals: &'static [Refusal],
    /// Which scenarios are run, by their names.
    pub chosen: fn(&str) -> bool,
}

/// How this program becomes a child when it is started again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Child {
    /// It runs the test of that full name, which calls [`every_step`].
    Test(&'static str),
    /// It calls [`live`] when it is given these arguments.
    Program(&'static [&'static str]),
}

/// A way in which a step of the store can fail.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    /// What the tally calls it.
    pub name: &'static str,
    /// What the watch answers.
    pub code: i32,
    /// Whether an error says truly what it was.
    pub is_told: fn(&Error) -> bool,
}
