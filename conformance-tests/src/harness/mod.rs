//! Code that all kinds of tests share: the stores, clients (actors), clocks and checks.

pub(crate) mod actor;
pub(crate) mod call_log;
mod call_words;
pub(crate) mod calls;
pub(crate) mod checks;
pub(crate) mod clock;
pub(crate) mod environment;
pub(crate) mod inspector;
pub(crate) mod logged_queue;
mod neighbour;
pub mod overrides;
pub(crate) mod parallel;
pub(crate) mod probe;
pub(crate) mod restorer;
pub(crate) mod room;
pub(crate) mod rounds;
pub(crate) mod run;
pub(crate) mod runtime;
pub(crate) mod samples;
pub(crate) mod store;
pub(crate) mod store_site;
pub(crate) mod times;
pub(crate) mod waiter;

/// The environment variable that asks for all that the suite generates, where otherwise it
/// runs a sample that is the same in each run.
const THOROUGH: &str = "RELQ_THOROUGH";

/// The environment variable with the number of a day. The run then injects a third of the
/// faults that are no deaths, and that of the next day another third.
const DAY: &str = "RELQ_DAY";

/// Whether this run is to be thorough: whether `RELQ_THOROUGH` is set.
pub(crate) fn is_thorough() -> bool {
    std::env::var_os(THOROUGH).is_some()
}

/// The number of the day whose share this run makes, if it makes only a share.
///
/// # Panics
/// When `RELQ_DAY` is not a number.
pub(crate) fn day() -> Option<usize> {
    let day = std::env::var(DAY).ok()?;
    Some(day.parse().unwrap_or_else(|_| panic!("{DAY}={day} is not a number")))
}
