//! Checks of the end of a worker: it ends on request and in time, or for an error that
//! only a person can repair (R21, R24).

use std::time::Duration;

use relq_core::error::Operation;
use relq_worker::Cancellation;

use super::{backoff::Failures, leases::grace_is_over};
use crate::{
    facts::{Facts, Moment, ROUNDING},
    report::{Violations, job},
    scenario::{End, ms},
    trace::Refusal,
};

const HANGS: (&str, &str) = ("never_hangs", "R21");
const STOPS: (&str, &str) = ("claims_nothing_after_the_stop", "R24");
const STARTS_NONE: (&str, &str) = ("starts_nothing_after_the_stop", "R24");
const IN_TIME: (&str, &str) = ("ends_in_time", "R24");
const GRACE: (&str, &str) = ("grants_the_grace_time", "R24");
const GIVES_BACK: (&str, &str) = ("gives_back_what_it_holds", "R24");
const BACKS_OFF: (&str, &str) = ("backs_off_the_release", "R21");
const GIVES_UP: (&str, &str) = ("gives_up_after_the_stated_time", "R21");
const ENDS_FOR_A_REASON: (&str, &str) = ("ends_for_a_reason", "R21");
const SILENT: (&str, &str) = ("calls_nothing_after_its_end", "R24");
const FINISHES: (&str, &str) = ("finishes_every_job", "R1");

/// The time limits of the last steps of a shutdown: dropping cut-off futures, the last
/// settlements after a hard stop, and the release of the worker.
const CUT_OFF: Duration = Duration::from_secs(1);
const HARD_STOP: Duration = Duration::from_secs(1);
const RELEASE: Duration = Duration::from_secs(5);

pub(crate) fn check(facts: &Facts, violations: &mut Violations) {
    if let Some(hangs) = facts.hangs {
        violations.check(HANGS, hangs.at, false, || {
            "nothing happens any more, and the worker has not ended".into()
        });
        return;
    }
    claims_nothing(facts, violations);
    starts_nothing(facts, violations);
    ends_in_time(facts, violations);
    grants_grace(facts, violations);
    gives_back(facts, violations);
    backs_off(facts, violations);
    outcome(facts, violations);
    finishes(facts, violations);
    let end = facts.end();
    for call in facts.calls.iter().filter(|call| call.sent.index > end.index) {
        violations.check(SILENT, call.sent.at, false, || format!("{:?}", call.request));
    }
}

fn claims_nothing(facts: &Facts, violations: &mut Violations) {
    let Some(asked) = facts.asked_to_end() else { return };
    for call in facts.calls_of(Operation::Claim) {
        violations.check(STOPS, call.sent.at, call.sent.at <= asked.at, || {
            format!("a claim was sent, and the worker had to stop at {:?}", asked.at)
        });
    }
}

/// The reply to a claim may arrive after the request to stop. Checks that its jobs are
/// given back and not started.
fn starts_nothing(facts: &Facts, violations: &mut Violations) {
    let asked = [facts.stop_asked, facts.halt_asked].into_iter().flatten();
    let Some(asked) = asked.min_by_key(|moment| moment.index) else { return };
    for held in facts.held.values() {
        for start in &held.started {
            violations.check(STARTS_NONE, start.at, start.at <= asked.at, || {
                let (job, at) = (job(held), asked.at);
                format!("{job} was started, and the worker had to stop at {at:?}")
            });
        }
    }
}

fn ends_in_time(facts: &Facts, violations: &mut Violations) {
    let (grace, lease) = (facts.scenario.settings.grace, facts.scenario.settings.lease);
    let last_steps = CUT_OFF + HARD_STOP + RELEASE + ROUNDING;
    let by_stop = begins_to_stop(facts).map(|stop| {
        // A graceful stop has the longest time limits. After a hard stop, the release
        // has only as much time as the last settlements: see `hard`.
        stop.at + ms(grace) + ms(lease) + last_steps
    });
    let hard = CUT_OFF + HARD_STOP * 2 + ROUNDING;
    let by_halt = [facts.halt_asked, halted(facts)].into_iter().flatten();
    let by_halt = by_halt.map(|halt| halt.at + hard).min();
    let limits = [by_stop, by_halt];
    let Some(limit) = limits.into_iter().flatten().min() else { return };
    let end = facts.end().at;
    let limit = limit + facts.suspended(Duration::ZERO, end);
    violations.check(IN_TIME, limit, end <= limit, || {
        format!("the worker ended at {end:?}, and had until {limit:?}")
    });
}

/// Checks that handlers are cut off when the grace time is over, and not earlier.
fn grants_grace(facts: &Facts, violations: &mut Violations) {
    for held in facts.held.values() {
        let Some(dropped) = held.dropped else { continue };
        let is_asked = held.asked.is_some_and(|(_, why)| why != Cancellation::ShutDown);
        let start = held.started.first().map_or(dropped.at, |start| start.at);
        let limit = facts.scenario.settings.timeout.map(ms);
        let is_timed_out = limit.is_some_and(|limit| start + limit <= dropped.at);
        let is_kept = is_asked || is_timed_out || grace_is_over(facts, dropped.at);
        violations.check(GRACE, dropped.at, is_kept, || {
            format!("the handler of {} was dropped before its time", job(held))
        });
    }
}

/// Checks that the worker gives back the jobs that it holds, and repeats a failed call
/// for as long as it may.
fn gives_back(facts: &Facts, violations: &mut Violations) {
    let releases: Vec<_> = facts.calls_of(Operation::ReleaseWorker).collect();
    let end = facts.end();
    violations.check(GIVES_BACK, end.at, !releases.is_empty(), || {
        "the worker ended and did not call release_worker".into()
    });
    let Some(last) = releases.last() else { return };
    if let Some((at, Err(refusal))) =
        last.replied.as_ref().and_then(|(at, reply)| Some((*at, reply.released?)))
    {
        let mut failures = Failures::default();
        let pause = releases.iter().map(|_| failures.failed()).last();
        let since =
            at.at.saturating_sub(releases[0].sent.at) + pause.unwrap_or_default();
        let is_hard = facts.halt_asked.is_some() || halted(facts).is_some();
        let limit = if is_hard { HARD_STOP } else { RELEASE };
        let is_late = since + facts.slack(releases[0].sent.at, at.at) >= limit;
        violations.check(GIVES_BACK, at.at, refusal.is_never || is_late, || {
            format!("the release failed at {at:?} and was not repeated")
        });
    }
    let is_confirmed = last
        .replied
        .as_ref()
        .is_some_and(|(_, reply)| matches!(reply.released, Some(Ok(_))));
    // The store may still lease jobs of a claim that the worker dropped, because the
    // claim may reach the store after the release.
    let is_claiming =
        facts.calls_of(Operation::Claim).any(|call| call.replied.is_none());
    if is_confirmed && !is_claiming {
        let left = facts.leased_at_end;
        violations.check(GIVES_BACK, end.at, left == 0, || {
            format!("the store still leases {left} jobs to the worker after its end")
        });
    }
}

/// Checks that the worker pauses before it repeats a release that failed.
fn backs_off(facts: &Facts, violations: &mut Violations) {
    let releases: Vec<_> = facts.calls_of(Operation::ReleaseWorker).collect();
    let mut failures = Failures::default();
    for pair in releases.windows(2) {
        let Some((failed, _)) = &pair[0].replied else { continue };
        let (next, pause) = (pair[1].sent.at, failures.failed());
        let is_kept = next + ROUNDING >= failed.at + pause / 2;
        violations.check(BACKS_OFF, next, is_kept, || {
            format!("the release failed at {:?}; the next is too early", failed.at)
        });
    }
}

/// Checks the result of the run. It is an error only if the store refused a call in a
/// way that must end the worker. Without an error the run ends only on request.
fn outcome(facts: &Facts, violations: &mut Violations) {
    let Some((over, result, _)) = &facts.over else { return };
    let doom = doomed(facts);
    let asked = facts.asked_to_end();
    let is_asked_first = |doom: &Moment| asked.is_some_and(|asked| asked.at <= doom.at);
    if let Some(doom) = doom.filter(|doom| !is_asked_first(doom)) {
        violations.check(GIVES_UP, doom.at, result.is_err(), || {
            format!(
                "a call was refused for so long at {:?}; the run ended well",
                doom.at
            )
        });
    }
    if let Err(error) = result {
        let has_reason = doom.is_some() || stats_refused(facts);
        violations.check(ENDS_FOR_A_REASON, over.at, has_reason, || {
            format!("the run ended with the error of a {error}, which it had to retry")
        });
    } else if doom.is_none() {
        violations.check(ENDS_FOR_A_REASON, over.at, asked.is_some(), || {
            "the run ended, and nothing had asked it to".into()
        });
    }
}

fn stats_refused(facts: &Facts) -> bool {
    let replies = facts.replies(Operation::Stats);
    replies.iter().any(|(.., result)| result.is_err_and(|refusal| refusal.is_never))
}

fn finishes(facts: &Facts, violations: &mut Violations) {
    let until_empty = matches!(facts.scenario.end, End::UntilEmpty | End::WhenFinished);
    let Some((over, Ok(()), _)) = &facts.over else { return };
    let left = facts.unfinished;
    violations.check(FINISHES, over.at, !until_empty || left == 0, || {
        format!("{left} jobs are left, and the worker had to run until none was")
    });
}

/// Returns the moment at which the worker must end because of an error: one that only a
/// person can repair and that has lasted too long (R21). `None` if there is none.
pub(crate) fn doomed(facts: &Facts) -> Option<Moment> {
    [drained(facts), halted(facts)].into_iter().flatten().min_by_key(|it| it.index)
}

/// Returns the moment at which the worker must stop hard because of an error: it cannot
/// settle jobs, or cannot keep leases. While it shuts down, a worker needs heartbeats, and
/// repeats a refused settlement until its time is over.
pub(crate) fn halted(facts: &Facts) -> Option<Moment> {
    let stop = begins_to_stop(facts);
    // A call can both settle and claim. If its reply refuses both, the worker stops hard,
    // as after a refused settlement alone.
    let by_settling = doomed_by(facts, &[Operation::Settle])
        .filter(|doom| stop.is_none_or(|stop| doom.index <= stop.index));
    let by_heartbeats = doomed_by(facts, &[Operation::Connect, Operation::Extend]);
    [by_settling, by_heartbeats].into_iter().flatten().min_by_key(|it| it.index)
}

/// Returns the moment at which the worker must stop gracefully because of an error: it
/// can get no jobs. A worker that shuts down needs no claims and no recoveries.
fn drained(facts: &Facts) -> Option<Moment> {
    let asked = facts.asked_to_end();
    [Operation::Claim, Operation::Recover]
        .into_iter()
        .filter_map(|operation| doomed_by(facts, &[operation]))
        .filter(|doom| asked.is_none_or(|asked| doom.index < asked.index))
        .min_by_key(|doom| doom.index)
}

/// Returns the moment at which the grace time of the running handlers begins: a request
/// to stop, or an error that stops the worker gracefully. `None` if there is neither.
pub(crate) fn begins_to_stop(facts: &Facts) -> Option<Moment> {
    let stops = [facts.asked_to_end(), drained(facts)];
    stops.into_iter().flatten().min_by_key(|moment| moment.index)
}

/// Returns the moment at which the replies to these operations make the worker give up.
fn doomed_by(facts: &Facts, operations: &[Operation]) -> Option<Moment> {
    let mut replies: Vec<_> = operations
        .iter()
        .flat_map(|operation| facts.replies(*operation))
        .map(|(at, _, result)| (at, result))
        .collect();
    replies.sort_by_key(|(at, _)| at.index);
    first_hopeless(facts, operations, &replies)
}

fn first_hopeless(
    facts: &Facts,
    operations: &[Operation],
    replies: &[(Moment, Result<(), Refusal>)],
) -> Option<Moment> {
    let limit = ms(facts.scenario.settings.give_up_after);
    let is_claim = operations[0] == Operation::Claim;
    let is_settle = operations[0] == Operation::Settle;
    let (mut since, mut has_worked) = (None, false);
    for (at, result) in replies {
        let Err(refusal) = result else {
            (since, has_worked) = (None, true);
            continue;
        };
        if is_claim && !has_worked && refusal.is_never {
            return Some(*at);
        }
        // Errors about the content of a settlement do not count: it is not repeated.
        if is_settle && refusal.is_of_content {
            continue;
        }
        if !refusal.needs_help {
            since = None;
            continue;
        }
        let began = *since.get_or_insert(*at);
        if refusal.is_wrong_server || facts.awake(began, *at) >= limit {
            return Some(*at);
        }
    }
    None
}
