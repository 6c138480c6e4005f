//! Injects one fault at each step, as [`sweep`](crate::sweep) does, for a backend that has
//! no server.
//!
//! ```text
//!  1  prepare a folder, by an actor that no fault hits; copy its files
//!  2  a child process makes its calls on a copy; its steps are counted, no fault yet
//!  3  before each step, and after the last (after each one in a scenario whose steps
//!     vary): a child works on a copy anew, stops there and is killed (SIGKILL, or the
//!     system's equivalent)
//!  4  for each step and each code that a store can fail with: an actor in this
//!     process works on a copy, and that step fails
//!  5  for each step: an actor freezes there, survivors take over, it continues
//!  6  once: an actor makes its calls while another process keeps the store locked
//!  7  after each: let every lease and delay end, recover, drain, and judge as in
//!     [`sweep`](crate::sweep)
//! ```
//!
//! A step is the unit that a backend reports: a statement, or the beginning or end of a
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

pub(crate) use child::is_child;
pub use child::live;
pub use drive::every_step;
pub(crate) use drive::one_act;
pub(crate) use start::temporary_folder;

use crate::{explore::Transactions, sweep::BoxFuture};

/// Whether a hook is called before or after a step.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Side {
    /// Before the step: none of its effects exist yet.
    Before,
    /// After the step: all of its effects exist.
    After,
}

/// The hook that the backend calls before and after each of its steps, with the step's
/// text. If the call before a step returns an error code, the step must fail with that
/// code and have no effect.
pub type Watch = Arc<dyn Fn(Side, &str) -> Result<(), i32> + Send + Sync>;

/// Opens a queue that is kept in a folder, as an actor of its own. The folder may be
/// empty. The backend calls the [`Watch`], if there is one, at each step.
pub type Open = fn(PathBuf, QueueName, Environment, Option<Watch>) -> Opening;

/// The future that opens a queue and returns it.
pub type Opening = BoxFuture<'static, Result<Arc<dyn Queue>, Error>>;

/// A backend that keeps its jobs in a folder. `src/own/sqlite.rs` of this crate has the
/// value for SQLite as an example.
///
/// When a call has returned, its effects must be in the folder's files, because the
/// suite copies them while the queue is open and no call runs. A call must wait at most
/// a few milliseconds for a lock that another actor holds.
#[derive(Debug, Clone, Copy)]
pub struct Embedded {
    /// How a child is started.
    pub child: Child,
    /// Opens the queue in a folder for one actor.
    pub open: Open,
    /// Returns the one-line name of a step for the tally, given the step's text.
    pub label: fn(&str) -> String,
    /// Returns whether a step changes nothing in the store, given its text. Failures and
    /// freezes hit every third of such steps, or each with `RELQ_THOROUGH=1`.
    pub only_reads: fn(&str) -> bool,
    /// The errors with which the suite lets steps fail.
    pub refusals: &'static [Refusal],
    /// Returns whether the suite runs the scenario of that name on this backend.
    pub chosen: fn(&str) -> bool,
    /// Which steps begin and end transactions. The search through [every
    /// order](crate::explore) of the steps needs it.
    pub transactions: Transactions,
}

/// How the suite starts this program again as a child process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Child {
    /// By running the test of that full name, which must call [`every_step`].
    Test(&'static str),
    /// With these arguments, for which the program must call [`live`].
    Program(&'static [&'static str]),
}

/// A way in which a step of the store can fail.
#[derive(Debug, Clone, Copy)]
pub struct Refusal {
    /// The name of the failure in the tally.
    pub name: &'static str,
    /// The error code with which the step must fail. The [`Watch`] returns it.
    pub code: i32,
    /// Returns whether the error of the call reports this failure correctly.
    pub is_told: fn(&Error) -> bool,
}
