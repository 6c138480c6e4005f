//! The common base of cases, scenarios and sequences: stores, actors, clocks, checks.

pub(crate) mod actor;
pub(crate) mod calls;
pub(crate) mod checks;
pub(crate) mod clock;
pub(crate) mod environment;
pub mod overrides;
pub(crate) mod parallel;
pub(crate) mod probe;
pub(crate) mod room;
pub(crate) mod run;
pub(crate) mod runtime;
pub(crate) mod store;
pub(crate) mod store_site;
pub(crate) mod times;
pub(crate) mod waiter;
