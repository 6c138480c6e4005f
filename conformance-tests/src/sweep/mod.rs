//! Injects one fault at each step of a queue's calls, and judges the store afterwards.
//!
//! ```text
//!  1  prepare the store, by an actor that no fault hits
//!  2  the victim makes its calls; its steps are counted, no fault yet; twice, to
//!     see that a run can be repeated
//!  3  for each step and each fault: prepare again, make the calls, inject the
//!     fault there
//!  4  end the faults, let every lease and delay end, recover, drain
//!  5  judge: the store holds what the calls promise, whether they took effect or not
//! ```
//!
//! The coverage is complete by construction: if a backend begins to send another
//! command, that command is counted and hit by faults as well.
//!
//! The victim runs on a thread and a runtime of its own. When it dies, the runtime is
//! dropped with all its tasks, and its result is lost.

mod actors;
mod check;
mod count_one;
mod drive;
mod faults;
mod judge;
mod known;
mod one_run;
mod prepare;
pub mod processes;
mod promise;
mod reach;
mod rescue;
mod run;
mod scenarios;
pub mod server_faults;
mod tally;
mod victim;
mod waiting;
mod work;

use std::pin::Pin;

pub(crate) use actors::{HealthyActor, Survivors, VictimObserver};
pub use check::Check;
pub(crate) use count_one::{Injection, RULES, needs, run_in_processes, tally};
pub use count_one::{names, names_without};
pub use drive::every_step;
pub(crate) use drive::one_act;
pub use faults::InjectedFault;
pub(crate) use faults::Share;
pub(crate) use judge::{bring_back, settle_up};
pub(crate) use promise::{Atomicity, End, Found, Knowledge, Promise, StoreContents};
pub(crate) use reach::missed_by_all;
pub use reach::reach;
pub use run::{failures, run};
pub(crate) use scenarios::{Again, SCENARIOS, Scenario};
pub use tally::Tally;
pub(crate) use victim::{Part, Ran, Victim};

/// A future in a box that can move between threads.
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
