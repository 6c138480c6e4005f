//! Checks of settlements: after the end of a handler the worker sends the right
//! disposition, until the store has answered it (R7, R8).

use std::time::Duration;

use relq_core::{Disposition, error::Operation, outcome::Extended};

use super::{
    backoff::Failures,
    ending::{begins_to_stop, halted},
    leases::grace_is_over,
};
use crate::{
    facts::{Call, Facts, Held, Moment, ROUNDING},
    queue::words,
    report::{Violations, job},
    scenario::{keeps_result, ms},
    simulation::LONGEST_RETRY,
    trace::Expected,
};

const TRUE: (&str, &str) = ("settles_as_the_handler_ended", "R8");
const ONE_CALL: (&str, &str) = ("settles_in_one_call_at_a_time", "R7");
const FINAL: (&str, &str) = ("settles_no_job_again", "R7");
const LOST: (&str, &str) = ("settles_nothing_after_a_lost_lease", "R7");
const AT_ONCE: (&str, &str) = ("settles_at_once", "R8");
const FULL: (&str, &str) = ("sends_a_second_settlement_when_it_is_full", "calls");
const BACKS_OFF: (&str, &str) = ("backs_off_settlements", "R21");
const REPEATS: (&str, &str) = ("repeats_a_failed_settlement", "R8");
const LOSES_NONE: (&str, &str) = ("loses_no_disposition", "R8");

pub(crate) fn check(facts: &Facts, violations: &mut Violations) {
    for held in facts.held.values() {
        is_true(facts, held, violations);
        one_call(facts, held, violations);
        nothing_after(facts, held, violations);
        loses_none(facts, held, violations);
    }
    at_once(facts, violations);
    second_is_full(facts, violations);
    backs_off(facts, violations);
}

/// The settlement that the worker must send for a delivery. `None` if it must send
/// none.
fn expected(facts: &Facts, held: &Held) -> Option<Result<(), Expected>> {
    if let Some((_, result)) = &held.ended {
        return Some(result.clone());
    }
    let (dropped, start) = (held.dropped?, held.started.first()?);
    let limit = ms(facts.scenario.settings.timeout?);
    let ran = facts.awake(*start, dropped);
    let is_timed_out = limit <= ran && held.asked.is_none();
    is_timed_out.then(|| {
        let error = format!("the handler took longer than its limit of {limit:?}");
        Err(Expected::Retry { error })
    })
}

fn is_true(facts: &Facts, held: &Held, violations: &mut Violations) {
    let expected = expected(facts, held);
    for &call in &held.settles {
        let call = &facts.calls[call];
        let mut settlements = call.request.settlements.iter();
        let sent = settlements.find(|one| *one.receipt.token() == held.lease);
        let sent = &sent.expect("the call settles it").disposition;
        let is_met = match (&expected, sent) {
            (Some(Ok(())), Disposition::Done) => !keeps_result(held.job),
            (Some(Ok(())), Disposition::DoneWith { result }) => {
                keeps_result(held.job) && result == &words(&held.lease)
            }
            (Some(Err(failure)), sent) => failure.is_met_by(sent, LONGEST_RETRY),
            (None, Disposition::GiveBack) => {
                held.started.is_empty() || grace_is_over(facts, call.sent.at)
            }
            (None, Disposition::Retry { error, .. }) => {
                held.started.is_empty() && error.starts_with("not started")
            }
            _ => false,
        };
        violations.check(TRUE, call.sent.at, is_met, || {
            format!("{} ended as {expected:?} and is settled as {sent:?}", job(held))
        });
    }
}

fn one_call(facts: &Facts, held: &Held, violations: &mut Violations) {
    let answered = facts.answer(held).map(|(at, _)| at);
    for &call in &held.settles {
        let sent = facts.calls[call].sent;
        let is_pending =
            held.settles.iter().any(|&other| facts.calls[other].is_pending(sent));
        violations.check(ONE_CALL, sent.at, !is_pending, || {
            format!("{} is settled by two calls at once", job(held))
        });
        let is_final = answered.is_some_and(|at| at.index < sent.index);
        violations.check(FINAL, sent.at, !is_final, || {
            format!("{} is settled again, after the store's answer", job(held))
        });
    }
}

/// Returns when the worker learns that a handler's lease has ended. It learns this when
/// the lease expires, or when a heartbeat's reply, read before `before`, reports the
/// lease as lost or cancelled.
fn lost(facts: &Facts, held: &Held, before: Moment) -> Option<Duration> {
    lost_with(facts, held, before, facts.known_end(held, before))
}

/// Like [`lost`], but returns the earliest time at which the worker may learn it. After
/// a suspend, the worker may give up a lease that the store confirms too late.
fn perhaps_lost(facts: &Facts, held: &Held, before: Moment) -> Option<Duration> {
    lost_with(facts, held, before, facts.sure_end(held, before))
}

fn lost_with(
    facts: &Facts,
    held: &Held,
    before: Moment,
    end: Duration,
) -> Option<Duration> {
    let end = end + facts.slack(held.claim_sent, end);
    // A report that a lease is lost does not count while a settlement is pending: the
    // settlement itself may have ended the lease.
    let reported = facts.reports(held).filter(|(at, extended)| {
        let is_pending =
            held.settles.iter().any(|&call| facts.calls[call].is_pending(*at));
        at.index < before.index && (*extended == Extended::Cancelled || !is_pending)
    });
    let reported = reported.map(|(at, _)| at.at).min();
    [Some(end), reported].into_iter().flatten().min()
}

fn nothing_after(facts: &Facts, held: &Held, violations: &mut Violations) {
    if held.started.is_empty() {
        return;
    }
    for (repeats, &call) in held.settles.iter().enumerate() {
        let sent = facts.calls[call].sent;
        // The first settlement may wait until other jobs can be settled too. If the
        // lease ends meanwhile, the store refuses the settlement, which is allowed.
        let ended = held.stopped().filter(|_| repeats == 0).unwrap_or(sent);
        // After the heartbeat thread has given up, the worker does not learn of lost
        // leases any more. So later losses do not count.
        let halt = halted(facts).map(|halt| halt.at);
        let lost = lost(facts, held, ended)
            .filter(|lost| *lost < ended.at && halt.is_none_or(|halt| *lost < halt));
        violations.check(LOST, sent.at, lost.is_none(), || {
            format!("{} is settled, and its lease was over at {lost:?}", job(held))
        });
    }
}

/// Checks that no disposition is forgotten: the store answers it or refuses its
/// content, or its lease ends, or the worker has no more time.
fn loses_none(facts: &Facts, held: &Held, violations: &mut Violations) {
    let (Some(stopped), Some(_)) = (held.stopped(), expected(facts, held)) else {
        return;
    };
    let end = facts.end();
    let is_answered = facts.answer(held).is_some() || facts.refused(held).is_some();
    let is_lost = perhaps_lost(facts, held, end)
        .is_some_and(|lost| lost <= end.at + facts.slack(held.claim_sent, end.at));
    let lease = ms(facts.scenario.settings.lease);
    let is_out_of_time =
        begins_to_stop(facts).is_some_and(|stop| stop.at + lease <= end.at + ROUNDING);
    let is_hard = facts.halt_asked.is_some() || halted(facts).is_some();
    let is_kept = is_answered || is_lost || is_out_of_time || is_hard;
    violations.check(LOSES_NONE, stopped.at, is_kept, || {
        let calls = held.settles.len();
        format!("{} ended and was settled {calls} times without an answer", job(held))
    });
}

/// Checks that a disposition is sent at once if no settlement is pending or has failed.
fn at_once(facts: &Facts, violations: &mut Violations) {
    let replies = facts.replies(Operation::Settle);
    for held in facts.held.values().filter(|held| expected(facts, held).is_some()) {
        let Some(stopped) = held.stopped() else { continue };
        let is_pending =
            facts.calls_of(Operation::Settle).any(|call| call.is_pending(stopped));
        let has_failed = replies
            .iter()
            .any(|(at, _, result)| at.index < stopped.index && result.is_err());
        let is_lost = facts.known_end(held, stopped) <= stopped.at
            || lost(facts, held, stopped).is_some_and(|lost| lost <= stopped.at)
            || held.asked.is_some();
        if is_pending || has_failed || facts.has_silence() || is_lost {
            continue;
        }
        let sent = held.settles.first().map(|&call| facts.calls[call].sent.at);
        let is_kept = sent.is_some_and(|sent| sent <= stopped.at + ROUNDING);
        let is_hard = facts.halt_asked.is_some_and(|halt| halt.at <= stopped.at)
            || halted(facts).is_some_and(|halt| halt.at <= stopped.at);
        violations.check(AT_ONCE, stopped.at, is_kept || is_hard, || {
            format!("{} ended, and was first settled at {sent:?}", job(held))
        });
    }
}

/// Checks that a second settlement is sent while one is pending only if the worker has many
/// slots and the second call is full. Otherwise its jobs wait for the reply of the first.
fn second_is_full(facts: &Facts, violations: &mut Violations) {
    const SHARED_FROM: usize = 16;
    let most_held = facts.scenario.most_held();
    let page = facts.scenario.settings.max_jobs_per_call as usize;
    let full = most_held.div_ceil(2).min(page);
    for call in facts.calls_of(Operation::Settle) {
        let calls = facts.calls_of(Operation::Settle);
        let beside = calls.filter(|one| one.is_pending(call.sent)).count();
        let jobs = call.request.settlements.len();
        let may_be_second = most_held >= SHARED_FROM && jobs == full;
        let is_kept = beside == 0 || beside == 1 && may_be_second;
        violations.check(FULL, call.sent.at, is_kept, || {
            format!("{jobs} are settled beside {beside} calls, and {full} are full")
        });
    }
}

/// Checks the time of the next settlement after a failure. It is sent after the pause,
/// and within the longest time that a pause may take. If another call was pending at
/// the failure, its success does not end the pause, unless no settlement of the failed
/// call is left.
fn backs_off(facts: &Facts, violations: &mut Violations) {
    let replies = facts.replies(Operation::Settle);
    let mut failures = Failures::default();
    for (place, (at, call, result)) in replies.iter().enumerate() {
        let Err(refusal) = result else {
            failures = Failures::default();
            continue;
        };
        let pause = failures.failed();
        let is_dropped = refusal.is_of_content && call.request.settlements.len() == 1;
        let until = replies.get(place + 1).filter(|_| is_dropped).map(|(at, ..)| *at);
        let mut later =
            facts.calls_of(Operation::Settle).filter(|c| c.sent.index > at.index);
        let next =
            later.find(|call| until.is_none_or(|reply| call.sent.index < reply.index));
        let shortest = at.at + pause / 2;
        if let Some(next) = next {
            let early = next.sent.at + ROUNDING;
            let suspended = facts.suspended(at.at, next.sent.at);
            let is_kept = early >= shortest || !suspended.is_zero();
            violations.check(BACKS_OFF, next.sent.at, is_kept, || {
                format!("a settlement failed at {:?}; the next is too early", at.at)
            });
        }
        repeats(facts, *at, violations);
        if refusal.is_of_content {
            sends_rest_again(facts, call, pause, violations);
        }
    }
}

/// Checks a call that was refused for the content of one settlement: each of its other
/// settlements is sent again soon after the pause.
fn sends_rest_again(
    facts: &Facts,
    refused: &Call,
    pause: Duration,
    violations: &mut Violations,
) {
    const SOON: Duration = Duration::from_millis(500);
    let Some((refused_at, _)) = &refused.replied else { return };
    let limit = refused_at.at + pause + SOON;
    let end = facts.end();
    let is_ending = [facts.halt_asked, halted(facts), Some(end)];
    let is_slow = |call: &Call| {
        let answer = call.replied.as_ref();
        answer.is_none_or(|(at, _)| at.at > call.sent.at + ms(10))
    };
    let is_disturbed = is_ending.into_iter().flatten().any(|one| one.at <= limit)
        || !facts.suspends.is_empty()
        || facts.calls_of(Operation::Settle).any(|call| {
            let is_beside = call.sent.at <= limit && !call.is_over(*refused_at);
            is_beside && (is_slow(call) || call.has_failed(Operation::Settle))
        });
    if is_disturbed {
        return;
    }
    for settlement in &refused.request.settlements {
        let held = &facts.held[settlement.receipt.token()];
        let is_left = refused.request.settlements.len() > 1
            && lost(facts, held, end).is_none_or(|lost| lost > limit);
        let is_sent = held
            .settles
            .iter()
            .any(|&call| facts.calls[call].sent.index > refused.sent.index);
        violations.check(LOSES_NONE, limit, !is_left || is_sent, || {
            format!("{} was settled beside a refused one, and never again", job(held))
        });
    }
}

/// Checks that the worker keeps sending while settlements are left: the time between
/// two calls stays within the longest pause.
fn repeats(facts: &Facts, failed: Moment, violations: &mut Violations) {
    let longest = ms(5000);
    let limit = failed.at + longest + facts.slack(failed.at, failed.at + longest);
    let end = facts.end();
    let is_ending = [facts.halt_asked, halted(facts), Some(end)];
    if is_ending.into_iter().flatten().any(|one| one.at <= limit) || facts.has_silence()
    {
        return;
    }
    let is_left = |held: &&Held| {
        let ended_before = held.stopped().is_some_and(|one| one.index < failed.index);
        let is_settled = [facts.answer(held).map(|(at, _)| at), facts.refused(held)]
            .into_iter()
            .flatten()
            .any(|one| one.index <= failed.index);
        let is_held = facts.sure_end(held, end) > limit
            && perhaps_lost(facts, held, end).is_none_or(|lost| lost > limit);
        ended_before && expected(facts, held).is_some() && !is_settled && is_held
    };
    let Some(held) = facts.held.values().find(is_left) else { return };
    // A call that is pending for the whole time may already carry the settlements.
    let is_kept = facts.calls_of(Operation::Settle).any(|call| {
        let is_sent = call.sent.index > failed.index && call.sent.at <= limit;
        is_sent || call.is_pending(failed)
    });
    violations.check(REPEATS, limit, is_kept, || {
        let job = job(held);
        format!(
            "a settlement failed at {:?}, and {job} is not settled again",
            failed.at
        )
    });
}
