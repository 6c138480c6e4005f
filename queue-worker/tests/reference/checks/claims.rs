//! Claims: no more than free slots and than a call may carry, at once when there is
//! room, and with pauses while they fail.

use std::time::Duration;

use relq_core::error::Operation;

use super::{
    backoff::{Failures, LONGEST_PAUSE},
    ending::doomed,
};
use crate::{
    facts::{Call, Facts, Moment, ROUNDING},
    report::Violations,
    scenario::ms,
};

const FREE_SLOTS: (&str, &str) = ("claims_no_more_than_free_slots", "R6");
const PAGE: (&str, &str) = ("keeps_to_the_jobs_of_a_call", "capabilities");
const WAIT: (&str, &str) = ("waits_for_a_part_of_the_lease", "R6");
const BACKS_OFF: (&str, &str) = ("backs_off_claims", "R21");
const AT_ONCE: (&str, &str) = ("claims_at_once_when_idle", "R21");

pub(crate) fn check(facts: &Facts, violations: &mut Violations) {
    for call in &facts.calls {
        free_slots(facts, call, violations);
        page(facts, call, violations);
        wait(facts, call, violations);
    }
    backs_off(facts, violations);
}

/// Handlers that run and jobs that are asked for share the slots.
fn free_slots(facts: &Facts, call: &Call, violations: &mut Violations) {
    let Some(ask) = call.request.ask else { return };
    let now = call.sent;
    let running = facts.held.values().filter(|held| held.is_running(now)).count();
    let pending = facts.calls.iter().filter(|one| one.is_pending(now));
    let asked: usize = pending.filter_map(|one| Some(one.request.ask?.max)).sum();
    let slots = facts.scenario.settings.concurrency as usize;
    violations.check(FREE_SLOTS, now.at, running + asked + ask.max <= slots, || {
        let max = ask.max;
        format!(
            "{max} are claimed, {running} run and {asked} are asked for: {slots} slots"
        )
    });
}

fn page(facts: &Facts, call: &Call, violations: &mut Violations) {
    let most = facts.scenario.settings.max_jobs_per_call as usize;
    let request = &call.request;
    let asked = request.ask.map_or(0, |ask| ask.max);
    let sizes = [asked, request.settlements.len(), request.extended.len()];
    violations.check(
        PAGE,
        call.sent.at,
        sizes.iter().all(|size| *size <= most),
        || format!("a call claims, settles, extends {sizes:?} jobs, of at most {most}"),
    );
}

fn wait(facts: &Facts, call: &Call, violations: &mut Violations) {
    let Some(ask) = call.request.ask.filter(|_| call.request.settlements.is_empty())
    else {
        return;
    };
    let longest = (ms(facts.scenario.settings.lease) / 3).min(ms(5000));
    let is_kept = !ask.wait.is_zero() && ask.wait <= longest;
    violations.check(WAIT, call.sent.at, is_kept, || {
        format!("a claim waits {:?}, and may wait up to {longest:?}", ask.wait)
    });
}

fn backs_off(facts: &Facts, violations: &mut Violations) {
    let replies = facts.replies(Operation::Claim);
    let mut failures = Failures::default();
    for (place, (at, _, result)) in replies.iter().enumerate() {
        let next = next_claim(facts, *at);
        let pause = if result.is_ok() {
            failures = Failures::default();
            Duration::ZERO
        } else {
            failures.failed()
        };
        let next_reply = replies.get(place + 1).map(|(at, ..)| *at);
        if let Some(next) = next
            && next_reply.is_none_or(|reply| next.sent.index < reply.index)
        {
            let is_suspended = !facts.suspended(at.at, next.sent.at).is_zero();
            let is_kept = next.sent.at + ROUNDING >= at.at + pause / 2 || is_suspended;
            violations.check(BACKS_OFF, next.sent.at, is_kept, || {
                format!("a claim failed at {:?}; the next is too early", at.at)
            });
        }
        // A claim that the worker gave up was a failure, too.
        let given_up = facts
            .calls_of(Operation::Claim)
            .filter(|call| call.sent.index < at.index && call.replied.is_none());
        let longest = given_up.fold(pause, |pause, _| (pause * 2).min(LONGEST_PAUSE));
        at_once(facts, *at, longest, violations);
    }
}

fn next_claim(facts: &Facts, after: Moment) -> Option<&Call> {
    facts.calls_of(Operation::Claim).find(|call| call.sent.index > after.index)
}

/// A worker without jobs claims as soon as it may.
fn at_once(
    facts: &Facts,
    replied: Moment,
    pause: Duration,
    violations: &mut Violations,
) {
    let limit = replied.at + pause + facts.slack(replied.at, replied.at + pause);
    let ends = [facts.asked_to_end(), doomed(facts), Some(facts.end())];
    let is_ending = ends.into_iter().flatten().any(|end| end.at <= limit);
    // The pause after a call without a reply begins at a time that no reply shows.
    if is_ending || facts.has_silence() || !is_idle(facts, replied, limit) {
        return;
    }
    let pending = facts.calls_of(Operation::Claim).any(|call| call.is_pending(replied));
    let next = next_claim(facts, replied).map(|call| call.sent.at);
    let is_kept = pending || next.is_some_and(|next| next <= limit);
    violations.check(AT_ONCE, limit, is_kept, || {
        format!("an idle worker had to claim by {limit:?}, and claimed at {next:?}")
    });
}

/// Whether the worker holds no job from `moment` to `limit`.
fn is_idle(facts: &Facts, moment: Moment, limit: Duration) -> bool {
    facts.held.values().all(|held| {
        let is_later = held.delivered.at > limit;
        let let_go = facts.answer(held).map(|(at, _)| at).or(facts.refused(held));
        is_later || let_go.is_some_and(|at| at.index < moment.index)
    })
}
