//! Checks of heartbeats: the worker sends them often enough while it holds a lease,
//! sooner after an error, and none after the lease ended (R6, R10).

use std::time::Duration;

use relq_core::error::Operation;

use super::{backoff::Failures, ending::halted};
use crate::{
    facts::{Facts, Held, Moment, ROUNDING},
    report::{Violations, job},
    scenario::{End, ms},
};

const IN_TIME: (&str, &str) = ("sends_heartbeats_in_time", "R6");
const SOONER: (&str, &str) = ("repeats_a_failed_heartbeat", "R6");
const STOPS: (&str, &str) = ("stops_heartbeats_of_what_is_settled", "R10");
const IDLE: (&str, &str) = ("keeps_a_shared_lease_while_idle", "R6");
const LENGTH: (&str, &str) = ("extends_by_the_jobs_own_lease", "R6");

pub(crate) fn check(facts: &Facts, violations: &mut Violations) {
    let connected = connected(facts);
    for held in facts.held.values() {
        if let Some(connected) = connected {
            in_time(facts, held, connected, violations);
        }
        stops(facts, held, connected, violations);
        for &call in &held.extends {
            let call = &facts.calls[call];
            let length = call.request.length;
            violations.check(LENGTH, call.sent.at, length == held.length, || {
                format!(
                    "{} is extended by {length:?}, not {:?}",
                    job(held),
                    held.length
                )
            });
        }
    }
    if let Some(connected) = connected
        && facts.scenario.settings.leases_are_shared
    {
        keeps_a_shared_lease(facts, connected, violations);
    }
    repeats(facts, violations);
    repeats_for_unknown(facts, violations);
}

/// When the connection of the heartbeats was opened. `None` if it was not.
fn connected(facts: &Facts) -> Option<Duration> {
    let replies = facts.replies(Operation::Connect);
    replies.iter().find(|(.., result)| result.is_ok()).map(|(at, ..)| at.at)
}

/// Returns when the worker stops holding a lease: when the job is settled, when the
/// lease has ended as far as the worker knows, or when the run ends.
fn let_go(facts: &Facts, held: &Held) -> Moment {
    let end = facts.end();
    let moments = [
        facts.answer(held).map(|(at, _)| at),
        facts.reported(held).map(|(at, _)| at),
        facts.refused(held),
        halted(facts),
        Some(end),
    ];
    let first = moments.into_iter().flatten().min_by_key(|moment| moment.index);
    let first = first.unwrap_or(end);
    let at = first.at.min(facts.known_end(held, first));
    Moment { at, ..first }
}

/// The longest time between two heartbeats of a lease of this length.
fn heartbeat_interval(lease: Duration) -> Duration {
    (lease / 3).max(ms(1))
}

/// Checks that the worker sends a heartbeat at least every third of the lease, from the
/// claim until it stops holding the lease. The first heartbeat may wait for the reply
/// to the claim.
fn in_time(
    facts: &Facts,
    held: &Held,
    connected: Duration,
    violations: &mut Violations,
) {
    if held.started.is_empty() {
        return;
    }
    let until = let_go(facts, held).at;
    let mut last = held.claim_sent;
    let sent = held.extends.iter().map(|&call| facts.calls[call].sent.at);
    for beat in sent.chain([until]) {
        let due = (last + heartbeat_interval(held.length))
            .max(held.delivered.at)
            .max(connected);
        let limit = due + facts.slack(last, due);
        let is_kept = beat <= limit || until <= limit;
        violations.check(IN_TIME, limit, is_kept, || {
            let job = job(held);
            format!("{job}: a heartbeat was due by {limit:?}, and came at {beat:?}")
        });
        last = beat;
    }
}

fn stops(
    facts: &Facts,
    held: &Held,
    connected: Option<Duration>,
    violations: &mut Violations,
) {
    let Some((answered, _)) = facts.answer(held) else { return };
    // A heartbeat that is due before the connection is open may wait for the
    // connection.
    let last = connected.map_or(answered.at, |connected| answered.at.max(connected));
    for &call in &held.extends {
        let sent = facts.calls[call].sent;
        // If the connection cannot be opened, the heartbeat uses that of the worker, after
        // it has waited for the error.
        let waited = facts.calls_of(Operation::Connect).any(|connect| {
            let replied = connect.replied.as_ref().map(|(at, _)| *at);
            replied
                .is_some_and(|at| at.index < sent.index && sent.at <= at.at + ROUNDING)
        });
        violations.check(STOPS, sent.at, sent.at <= last || waited, || {
            let job = job(held);
            format!("{job} is extended, and was settled at {:?}", answered.at)
        });
    }
}

/// Checks that after an error the next heartbeat of the same leases follows within the
/// back-off.
fn repeats(facts: &Facts, violations: &mut Violations) {
    let mut replies = facts.replies(Operation::Extend);
    replies.extend(facts.replies(Operation::Connect));
    replies.sort_by_key(|(at, ..)| at.index);
    let mut failures = Failures::default();
    for (at, call, result) in replies {
        if result.is_ok() {
            // Opening the connection does not count as a success: the heartbeat that
            // follows may still fail. Neither does a reply that leaves a lease unknown.
            if call.is(Operation::Extend) && !call.leaves_unknown() {
                failures = Failures::default();
            }
            continue;
        }
        let longest = failures.failed();
        let limit = at.at + longest + facts.slack(at.at, at.at + longest);
        let of_call = facts.held.values().filter(|held| {
            call.request.extended.contains(&held.lease)
                && !held.started.is_empty()
                && let_go(facts, held).at > limit
        });
        for held in of_call {
            let mut beats = held.extends.iter().map(|&call| facts.calls[call].sent);
            let is_kept = beats.any(|sent| sent.index > at.index && sent.at <= limit);
            violations.check(SOONER, limit, is_kept, || {
                let job = job(held);
                format!("{job}: a heartbeat failed at {:?}; none by {limit:?}", at.at)
            });
        }
    }
    bounded(facts, violations);
}

/// The longest time after which the worker asks again about an unknown lease.
const SOON: Duration = ms(500);

/// Checks that the next heartbeat follows soon after one that left a lease unknown.
fn repeats_for_unknown(facts: &Facts, violations: &mut Violations) {
    for held in facts.held.values().filter(|held| !held.started.is_empty()) {
        for at in facts.unknown(held) {
            let limit = at.at + SOON + facts.slack(at.at, at.at + SOON);
            if let_go(facts, held).at <= limit {
                continue;
            }
            let mut beats = held.extends.iter().map(|&call| facts.calls[call].sent);
            let is_kept = beats.any(|sent| sent.index > at.index && sent.at <= limit);
            violations.check(SOONER, limit, is_kept, || {
                let job = job(held);
                format!("{job}: unknown since {:?}; no heartbeat by {limit:?}", at.at)
            });
        }
    }
}

/// Checks that the worker pauses before it repeats a failed heartbeat.
fn bounded(facts: &Facts, violations: &mut Violations) {
    let failed: Vec<_> = facts
        .replies(Operation::Extend)
        .into_iter()
        .filter(|(.., result)| result.is_err())
        .map(|(at, ..)| at.at)
        .collect();
    let second = ms(1000);
    let leases: std::collections::BTreeSet<_> =
        facts.held.values().map(|held| held.length).collect();
    let lease = leases.first().copied().unwrap_or(second);
    let by_rhythm = second.div_duration_f64(heartbeat_interval(lease)).ceil();
    let most = 24.0 + by_rhythm * leases.len() as f64 * facts.held.len() as f64;
    for (index, at) in failed.iter().enumerate() {
        let within = failed[index..].iter().take_while(|one| **one < *at + second);
        let count = within.count();
        violations.check(
            ("backs_off_heartbeats", "R21"),
            *at,
            (count as f64) <= most,
            || format!("{count} heartbeats failed within a second, of at most {most}"),
        );
    }
}

/// Checks that a worker with one lease for all its jobs sends heartbeats even while it
/// is idle.
fn keeps_a_shared_lease(
    facts: &Facts,
    connected: Duration,
    violations: &mut Violations,
) {
    let lease = ms(facts.scenario.settings.lease);
    let until = match facts.scenario.end {
        End::UntilEmpty => {
            facts.asked_to_end().map_or(facts.end().at, |moment| moment.at)
        }
        _ => facts.end().at,
    };
    let until = halted(facts).map_or(until, |halt| until.min(halt.at));
    let sent =
        facts.calls_of(Operation::Extend).filter(|call| call.request.length == lease);
    let mut last = connected;
    for beat in sent.map(|call| call.sent.at).chain([until]) {
        let due = last + heartbeat_interval(lease);
        let limit = due + facts.slack(last, due);
        violations.check(IDLE, limit, beat <= limit || until <= limit, || {
            format!("a heartbeat was due by {limit:?}, and came at {beat:?}")
        });
        last = beat.max(connected);
    }
}
