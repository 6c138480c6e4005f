//! The worker's promises, checked on the trace of a run.

mod backoff;
mod claims;
mod dispositions;
mod ending;
mod heartbeats;
mod leases;
mod observer;
pub(crate) mod prefetch;
mod reaping;
mod summary;

use crate::{facts::Facts, report::Violations};

pub(crate) fn check(facts: &Facts) -> Violations {
    let mut violations = Violations::default();
    leases::check(facts, &mut violations);
    heartbeats::check(facts, &mut violations);
    dispositions::check(facts, &mut violations);
    claims::check(facts, &mut violations);
    prefetch::check(facts, &mut violations);
    reaping::check(facts, &mut violations);
    ending::check(facts, &mut violations);
    summary::check(facts, &mut violations);
    observer::check(facts, &mut violations);
    violations
}
