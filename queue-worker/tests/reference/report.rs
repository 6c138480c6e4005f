//! Collects broken promises, and prints them.

use std::{fmt, time::Duration};

use crate::{facts::Held, queue::words};

/// A promise of the worker that a run has broken.
#[derive(Debug)]
pub(crate) struct Violation {
    /// The name of the promise, which the table of mutants uses too.
    pub promise: &'static str,
    pub rule: &'static str,
    pub at: Duration,
    pub what: String,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { promise, rule, at, what } = self;
        write!(f, "PROMISE {promise} ({rule}) at {at:?}: {what}")
    }
}

#[derive(Debug, Default)]
pub(crate) struct Violations(pub Vec<Violation>);

impl Violations {
    /// Records that a promise is broken, unless `is_kept`.
    pub(crate) fn check(
        &mut self,
        (promise, rule): (&'static str, &'static str),
        at: Duration,
        is_kept: bool,
        what: impl FnOnce() -> String,
    ) {
        if !is_kept {
            self.0.push(Violation { promise, rule, at, what: what() });
        }
    }
}

/// Formats a delivery as text for the report.
pub(crate) fn job(held: &Held) -> String {
    format!("job {} ({})", held.job, words(&held.lease))
}
