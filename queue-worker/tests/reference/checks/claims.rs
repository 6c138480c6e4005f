//! Checks of claims: the worker asks for no more jobs than it has free slots and than a
//! call may carry, claims at once when it has room, and pauses while claims fail.

use std::time::Duration;

use relq_core::error::Operation;

use super::{
    backoff::{Failures, LONGEST_PAUSE},
    ending::doomed,
};
use crate::{
    facts::{Call, Facts, Held, Moment, ROUNDING},
    report::Violations,
    scenario::ms,
};

const FREE_SLOTS: (&str, &str) = ("claims_no_more_than_free_slots", "R6");
const FEW_UNSETTLED: (&str, &str) = ("holds_few_unsettled_jobs", "R9");
const PAGE: (&str, &str) = ("keeps_to_the_jobs_of_a_call", "capabilities");
const WAIT: (&str, &str) = ("waits_for_a_part_of_the_lease", "R6");
const BACKS_OFF: (&str, &str) = ("backs_off_claims", "R21");
const SETTLES_FIRST: (&str, &str) = ("claims_nothing_while_it_cannot_settle", "R8");
const AT_ONCE: (&str, &str) = ("claims_at_once_when_idle", "R21");

pub(crate) fn check(facts: &Facts, violations: &mut Violations) {
    for call in &facts.calls {
        free_slots(facts, call, violations);
        few_unsettled(facts, call, violations);
        page(facts, call, violations);
        wait(facts, call, violations);
    }
    backs_off(facts, violations);
    settles_first(facts, violations);
}

/// Checks that running handlers and requested jobs together do not exceed the slots. A
/// worker that prefetches has checks of its own.
fn free_slots(facts: &Facts, call: &Call, violations: &mut Violations) {
    let Some(ask) = call.request.ask.filter(|_| !facts.prefetches()) else { return };
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

/// Checks that the jobs that the worker holds or asks for, settled or not, are at most
/// two for each slot and each prefetched job: all of them run again if it dies. Jobs whose first lease may have
/// ended do not count, because the worker may have lost them.
fn few_unsettled(facts: &Facts, call: &Call, violations: &mut Violations) {
    let Some(ask) = call.request.ask else { return };
    let now = call.sent;
    let is_held = |held: &&Held| {
        let is_leased = now.at < held.claim_sent + held.length;
        let has_ended = held.ended.as_ref().is_some_and(|(at, _)| at.index < now.index);
        let let_go = facts.answer(held).map(|(at, _)| at).or(facts.refused(held));
        let is_kept = let_go.is_none_or(|at| at.index > now.index);
        // A handler is told that its lease was lost. Such a job is not settled.
        let is_to_settle = held.asked.is_none();
        // Once a heartbeat has reported the end of the lease, the worker no longer waits
        // for the answer to a settlement of the job.
        let reported = facts.reported(held).map(|(at, _)| at);
        let is_kept = is_kept && reported.is_none_or(|at| at.index > now.index);
        is_leased && is_to_settle && (held.is_running(now) || has_ended && is_kept)
    };
    let held = facts.held.values().filter(is_held).count();
    let pending = facts.calls.iter().filter(|one| one.is_pending(now));
    let asked: usize = pending.filter_map(|one| Some(one.request.ask?.max)).sum();
    let most = 2 * facts.scenario.most_held();
    violations.check(FEW_UNSETTLED, now.at, held + asked + ask.max <= most, || {
        let max = ask.max;
        format!("{max} are claimed, {held} held and {asked} asked for: at most {most}")
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
    if facts.scenario.other_queue.is_some() {
        // The slots of a claim that waits would not be free for the other queue.
        return violations.check(WAIT, call.sent.at, ask.wait.is_zero(), || {
            format!("a claim waits {:?}, although another queue needs slots", ask.wait)
        });
    }
    let longest = longest_wait(facts);
    let is_kept = !ask.wait.is_zero() && ask.wait <= longest;
    violations.check(WAIT, call.sent.at, is_kept, || {
        format!("a claim waits {:?}, and may wait up to {longest:?}", ask.wait)
    });
}

/// The longest time for which a claim, or a worker on several queues, waits for a job.
fn longest_wait(facts: &Facts) -> Duration {
    (ms(facts.scenario.settings.lease) / 3).min(ms(5000))
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
        // If the worker gave up a claim without a reply, this counts as a failure too.
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

/// Checks that a worker without jobs claims as soon as it may.
fn at_once(
    facts: &Facts,
    replied: Moment,
    pause: Duration,
    violations: &mut Violations,
) {
    // With another queue the worker waits between its claims, and the trace does not show
    // the wait.
    let waits =
        facts.scenario.other_queue.map_or(Duration::ZERO, |_| longest_wait(facts));
    let latest = replied.at + pause + waits;
    let limit = latest + facts.slack(replied.at, latest);
    let ends = [facts.asked_to_end(), doomed(facts), Some(facts.end())];
    let is_ending = ends.into_iter().flatten().any(|end| end.at <= limit);
    // A call without a reply also causes a pause, but the trace does not show when that
    // begins.
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

/// Checks that no claim is sent while a settlement that failed waits for its
/// repetition.
fn settles_first(facts: &Facts, violations: &mut Violations) {
    for (failed, call, result) in facts.replies(Operation::Settle) {
        if result.is_ok() {
            continue;
        }
        let jobs = &call.request.settlements;
        let repeats = |one: &&Call| {
            let is_later = one.sent.index > failed.index;
            is_later && one.request.settlements.iter().any(|it| jobs.contains(it))
        };
        let Some(repeated) = facts.calls.iter().find(repeats) else { continue };
        let waits = failed.index..repeated.sent.index;
        for claim in facts.calls_of(Operation::Claim) {
            let is_kept = !waits.contains(&claim.sent.index);
            violations.check(SETTLES_FIRST, claim.sent.at, is_kept, || {
                let (failed, repeated) = (failed.at, repeated.sent.at);
                format!("a settlement waits from {failed:?} to {repeated:?}")
            });
        }
    }
}
