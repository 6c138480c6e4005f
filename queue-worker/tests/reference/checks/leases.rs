//! Checks which jobs are started, and that handlers learn of lost leases (R6, R7).

use std::time::Duration;

use relq_core::outcome::Extended;
use relq_worker::Cancellation;

use super::ending::{begins_to_stop, halted};
use crate::{
    facts::{Facts, Held, ROUNDING},
    report::{Violations, job},
    scenario::ms,
};

const SURELY_LEASED: (&str, &str) = ("starts_only_what_is_surely_leased", "R6");
const ONCE: (&str, &str) = ("runs_a_delivery_once", "R6");
const SLOTS: (&str, &str) = ("runs_no_more_than_its_slots", "concurrency");
const TOLD: (&str, &str) = ("tells_a_handler_of_a_lost_lease", "R6");
const REASON: (&str, &str) = ("stops_a_handler_for_a_reason", "R6, R24");
const ENDS: (&str, &str) = ("ends_a_handler_after_the_grace_time", "R6");
const TIMEOUT: (&str, &str) = ("keeps_the_time_out", "timeout");

/// How far the worker's end of a lease may differ from the exact end: the worker counts
/// in whole microseconds.
const MICROSECOND: Duration = Duration::from_micros(1);

pub(crate) fn check(facts: &Facts, violations: &mut Violations) {
    for held in facts.held.values() {
        starts(facts, held, violations);
        is_told(facts, held, violations);
        has_reason(facts, held, violations);
        keeps_the_time_out(facts, held, violations);
        ends_in_the_grace_time(facts, held, violations);
    }
}

fn starts(facts: &Facts, held: &Held, violations: &mut Violations) {
    for start in &held.started {
        let end = facts.known_end(held, *start);
        violations.check(SURELY_LEASED, start.at, start.at < end, || {
            let job = job(held);
            format!("{job} was started, and its lease was sure only until {end:?}")
        });
        let running = facts.held.values().filter(|one| one.is_running(*start)).count();
        let slots = facts.scenario.settings.concurrency as usize;
        violations.check(SLOTS, start.at, running <= slots, || {
            format!("{running} handlers run on {slots} slots, with {}", job(held))
        });
    }
    let starts = held.started.len();
    violations.check(ONCE, held.delivered.at, starts <= 1, || {
        format!("{} was started {starts} times", job(held))
    });
}

/// Checks that a handler is asked to stop as soon as its lease may have expired, or is
/// reported as lost or cancelled.
fn is_told(facts: &Facts, held: &Held, violations: &mut Violations) {
    let (Some(_), stopped) = (held.started.first(), held.stopped()) else { return };
    let stopped = stopped.unwrap_or_else(|| facts.end());
    let end = facts.known_end(held, stopped);
    let reported = facts.reported(held).map(|(moment, _)| moment.at);
    let over = reported.map_or(end, |at| at.min(end));
    let deadline = over + facts.slack(held.claim_sent, over);
    let is_over_before = deadline < stopped.at;
    // After the heartbeat thread has given up, no handler is asked to stop, because the
    // worker ends.
    if !is_over_before || halted(facts).is_some_and(|halt| halt.at <= deadline) {
        return;
    }
    let asked = held.asked.map(|(moment, _)| moment.at);
    violations.check(TOLD, deadline, asked.is_some_and(|at| at <= deadline), || {
        let job = job(held);
        format!("{job} had to be asked to stop by {deadline:?}, and was at {asked:?}")
    });
}

fn has_reason(facts: &Facts, held: &Held, violations: &mut Violations) {
    let Some((asked, why)) = held.asked else { return };
    let report = facts.reported(held).filter(|(moment, _)| moment.index < asked.index);
    let is_kept = match why {
        Cancellation::LeaseLost => {
            facts.known_end(held, asked) <= asked.at + MICROSECOND
                || report.is_some_and(|(_, end)| end == Extended::LeaseLost)
        }
        Cancellation::Cancelled => {
            report.is_some_and(|(_, end)| end == Extended::Cancelled)
        }
        Cancellation::ShutDown => grace_is_over(facts, asked.at),
        _ => facts.scenario.settings.timeout.is_some(),
    };
    violations.check(REASON, asked.at, is_kept, || {
        let end = facts.known_end(held, asked);
        format!("{} was asked to stop ({why:?}); leased until {end:?}", job(held))
    });
}

/// Whether the grace time is over at `at`, so that handlers may be cut off.
pub(crate) fn grace_is_over(facts: &Facts, at: Duration) -> bool {
    let grace = ms(facts.scenario.settings.grace);
    let by_stop =
        begins_to_stop(facts).is_some_and(|stop| stop.at + grace <= at + ROUNDING);
    let mut halts = [facts.halt_asked, halted(facts)].into_iter().flatten();
    by_stop || halts.any(|halt| halt.at <= at)
}

/// Checks that an attempt which exceeds the time limit is dropped.
fn keeps_the_time_out(facts: &Facts, held: &Held, violations: &mut Violations) {
    let Some(timeout) = facts.scenario.settings.timeout else { return };
    let Some(start) = held.started.first() else { return };
    let stopped = held.stopped().unwrap_or_else(|| facts.end());
    let slack = facts.suspended(start.at, stopped.at) + ROUNDING;
    let limit = start.at + ms(timeout) + slack;
    violations.check(TIMEOUT, limit, stopped.at <= limit, || {
        format!("{} ran until {:?}, and had until {limit:?}", job(held), stopped.at)
    });
}

/// Checks that a handler which was asked to stop, and does not, is dropped when the
/// grace time has passed.
fn ends_in_the_grace_time(facts: &Facts, held: &Held, violations: &mut Violations) {
    let Some((asked, why)) = held.asked else { return };
    let stopped = held.stopped().unwrap_or_else(|| facts.end());
    let slack = facts.suspended(asked.at, stopped.at) + ROUNDING;
    let limit = asked.at + ms(facts.scenario.settings.grace) + slack;
    violations.check(ENDS, limit, stopped.at <= limit, || {
        let (job, at) = (job(held), stopped.at);
        format!("{job} had to end ({why:?}) by {limit:?}, and ran until {at:?}")
    });
}
