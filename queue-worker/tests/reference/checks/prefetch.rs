//! Checks of prefetched jobs: there are no more than were set, the first of them is
//! started when a handler ends, and none waits for longer than half a lease.

use std::time::Duration;

use super::ending::doomed;
use crate::{
    facts::{Facts, Held, Moment, ROUNDING},
    report::{Violations, job},
    scenario::ms,
};

const NO_MORE: (&str, &str) = ("prefetches_no_more_than_set", "prefetch");
const NEXT: (&str, &str) = ("starts_a_waiting_job_when_a_handler_ends", "prefetch");
const NOT_AFTER: (&str, &str) = ("starts_no_job_that_waited_too_long", "prefetch");
const GIVES_BACK: (&str, &str) = ("gives_back_what_waits_too_long", "prefetch");

const RESTS: (&str, &str) = ("prefetches_nothing_until_a_handler_ends", "prefetch");

/// The names of the promises that only a worker keeps that prefetches.
pub(crate) const PROMISES: &[&str] =
    &[NO_MORE.0, NEXT.0, NOT_AFTER.0, GIVES_BACK.0, RESTS.0];

pub(crate) fn check(facts: &Facts, violations: &mut Violations) {
    if !facts.prefetches() {
        return;
    }
    no_more_than_set(facts, violations);
    for held in facts.held.values() {
        is_followed(facts, held, violations);
        not_started_too_late(facts, held, violations);
        is_given_back(facts, held, violations);
        rests(facts, held, violations);
    }
}

/// Checks that the jobs that run, wait or are asked for do not exceed the slots and the
/// number of jobs to prefetch.
fn no_more_than_set(facts: &Facts, violations: &mut Violations) {
    for call in &facts.calls {
        let Some(ask) = call.request.ask else { continue };
        let now = call.sent;
        let is_held =
            |held: &&Held| held.is_running(now) || is_waiting(facts, held, now);
        let held = facts.held.values().filter(is_held).count();
        let pending = facts.calls.iter().filter(|one| one.is_pending(now));
        let asked: usize = pending.filter_map(|one| Some(one.request.ask?.max)).sum();
        let most = facts.scenario.most_held();
        violations.check(NO_MORE, now.at, held + asked + ask.max <= most, || {
            let max = ask.max;
            format!("{max} are claimed, {held} held, {asked} asked for: at most {most}")
        });
    }
}

/// Checks that no slot stays free after the end of a handler while a job waits.
fn is_followed(facts: &Facts, held: &Held, violations: &mut Violations) {
    let Some(stopped) = held.ended.as_ref().map(|(at, _)| *at) else { return };
    let soon = facts.last_by(stopped.at + ROUNDING);
    if is_ending(facts, soon.at) {
        return;
    }
    let running = facts.held.values().filter(|one| one.is_running(soon)).count();
    let waits = |one: &&Held| {
        is_waiting(facts, one, stopped)
            && one.delivered.at + ROUNDING < stopped.at
            && one.started.first().is_none_or(|start| start.index > soon.index)
            && soon.at < limit(facts, one)
    };
    let left = facts.held.values().find(waits);
    let slots = facts.scenario.settings.concurrency as usize;
    let is_kept = left.is_none() || running == slots;
    violations.check(NEXT, soon.at, is_kept, || {
        let waiting = left.map(job);
        format!("{running} handlers run on {slots} slots, and {waiting:?} waits")
    });
}

fn not_started_too_late(facts: &Facts, held: &Held, violations: &mut Violations) {
    let Some(start) = held.started.first() else { return };
    let limit = limit(facts, held).max(held.delivered.at);
    let limit = limit + facts.slack(held.claim_sent, limit);
    violations.check(NOT_AFTER, start.at, start.at <= limit, || {
        format!("{} was started after {limit:?}, and was to be given back", job(held))
    });
}

/// Checks that a job which was not started in time is settled soon, where nothing delays a
/// settlement.
fn is_given_back(facts: &Facts, held: &Held, violations: &mut Violations) {
    let scenario = &facts.scenario;
    let is_calm = scenario.faults.is_empty()
        && scenario.outages.is_empty()
        && scenario.suspends.is_empty();
    let limit = limit(facts, held) + ms(50);
    if !is_calm || !held.started.is_empty() || is_ending(facts, limit) {
        return;
    }
    if facts.reported(held).is_some_and(|(at, _)| at.at <= limit) {
        return;
    }
    let settled = held.settles.first().map(|call| facts.calls[*call].sent.at);
    violations.check(GIVES_BACK, limit, settled.is_some_and(|at| at <= limit), || {
        format!("{} had to be given back by {limit:?}, not at {settled:?}", job(held))
    });
}

/// Checks that the worker claims jobs for free slots alone, once a job has waited too
/// long, until a handler ends.
fn rests(facts: &Facts, held: &Held, violations: &mut Violations) {
    let limit = limit(facts, held);
    let given_back = held.settles.first().map(|call| facts.calls[*call].sent);
    let Some(from) = given_back.filter(|at| held.started.is_empty() && at.at >= limit)
    else {
        return;
    };
    // A job whose lease may have ended by then is given back too, and does not end the
    // prefetching.
    let at_limit = facts.last_by(limit);
    if held.delivered.at >= limit || facts.known_end(held, at_limit) <= limit {
        return;
    }
    let ends = facts.held.values().filter_map(Held::stopped);
    let next_end = ends.filter(|at| at.at >= limit).min_by_key(|at| at.index);
    let until = next_end.map_or(usize::MAX, |at| at.index);
    let slots = facts.scenario.settings.concurrency as usize;
    for call in facts.calls.iter().filter(|one| one.sent.index > from.index) {
        let Some(ask) = call.request.ask.filter(|_| call.sent.index < until) else {
            continue;
        };
        let now = call.sent;
        let running = facts.held.values().filter(|one| one.is_running(now)).count();
        let is_kept = running + ask.max <= slots;
        violations.check(RESTS, now.at, is_kept, || {
            let (max, job) = (ask.max, job(held));
            format!("{max} are claimed with {running} running, though {job} went back")
        });
    }
}

/// Whether the worker has the job at `now`, has neither started it nor sent its
/// settlement, and may still start it.
fn is_waiting(facts: &Facts, held: &Held, now: Moment) -> bool {
    let settled = held.settles.first().map(|call| facts.calls[*call].sent);
    let is_over = facts.reported(held).is_some_and(|(at, _)| at.index < now.index);
    held.delivered.index < now.index
        && held.started.first().is_none_or(|start| start.index > now.index)
        && settled.is_none_or(|sent| sent.index > now.index)
        && now.at < limit(facts, held)
        && now.at < facts.known_end(held, now)
        && !is_over
}

/// Until when the job may wait for a slot.
fn limit(facts: &Facts, held: &Held) -> Duration {
    held.claim_sent + ms(facts.scenario.settings.lease) / 2
}

fn is_ending(facts: &Facts, at: Duration) -> bool {
    let ends = [facts.asked_to_end(), doomed(facts), Some(facts.end())];
    ends.into_iter().flatten().any(|end| end.at <= at)
}
