//! Checks of the reaper: it recovers at once, page after page, then at an interval, and
//! continues after errors (R9, R12).

use std::{collections::BTreeSet, time::Duration};

use relq_core::error::Operation;

use super::{backoff::Failures, ending::doomed};
use crate::{
    facts::{Call, Facts, ROUNDING},
    report::Violations,
    scenario::{End, ms},
};

const AT_ONCE: (&str, &str) = ("reaps_at_the_start", "R9");
const PAGES: (&str, &str) = ("reaps_until_there_is_no_more", "R9");
const IN_TIME: (&str, &str) = ("reaps_at_its_interval", "R9");
const SPARES: (&str, &str) = ("reaps_no_more_often_than_its_interval", "R9");
const BACKS_OFF: (&str, &str) = ("backs_off_recovery", "R21");
const CONTINUES: (&str, &str) = ("reaps_after_errors", "R9");

pub(crate) fn check(facts: &Facts, violations: &mut Violations) {
    at_once(facts, violations);
    in_time(facts, violations);
}

fn at_once(facts: &Facts, violations: &mut Violations) {
    let first = facts.calls_of(Operation::Recover).next().map(|call| call.sent.at);
    let is_at_once = first.is_some_and(|first| first <= ROUNDING);
    violations.check(AT_ONCE, Duration::ZERO, is_at_once, || {
        format!("the first recovery was sent at {first:?}")
    });
}

fn in_time(facts: &Facts, violations: &mut Violations) {
    let mut failures = Failures::default();
    let last = last_recoveries(facts);
    let is_last = |call: &Call| last.contains(&call.sent.index);
    for call in facts.calls_of(Operation::Recover) {
        let Some((at, reply)) = &call.replied else { continue };
        let Some(recovered) = reply.recovered else { continue };
        let (promise, early, late) = match recovered {
            Ok(recovered) if recovered.more => (PAGES, Duration::ZERO, Duration::ZERO),
            _ if is_last(call) => continue,
            Ok(recovered) => {
                failures = Failures::default();
                let (early, late) = pause(facts, recovered.next_in);
                (IN_TIME, early, late)
            }
            Err(_) => {
                let longest = failures.failed();
                (CONTINUES, longest / 2, longest)
            }
        };
        let following = || {
            facts.calls_of(Operation::Recover).filter(|one| one.sent.index > at.index)
        };
        let next = following().next().map(|call| call.sent.at);
        let limit = at.at + late + facts.suspended(at.at, at.at + late) + ROUNDING;
        let ends = [facts.asked_to_end(), doomed(facts), Some(facts.end())];
        let is_ending = ends.into_iter().flatten().any(|end| end.at <= limit);
        let is_in_time = is_ending || next.is_some_and(|next| next <= limit);
        violations.check(promise, limit, is_in_time, || {
            format!("a recovery was due by {limit:?}, and was sent at {next:?}")
        });
        let too_early = if promise == CONTINUES { BACKS_OFF } else { SPARES };
        let next = following().find(|one| !is_last(one)).map(|call| call.sent.at);
        let is_late = next.is_none_or(|next| next + ROUNDING >= at.at + early);
        violations.check(too_early, at.at + early, is_late, || {
            format!("the recovery after {:?} was sent at {next:?}", at.at)
        });
    }
}

/// The numbers of the recoveries that are not the reaper's. A worker that runs until its
/// queue is empty recovers before it ends: it sends the first recovery when the statistics
/// have shown an empty queue, and each further one when the one before says that there is
/// more.
fn last_recoveries(facts: &Facts) -> BTreeSet<usize> {
    let mut last = BTreeSet::new();
    let mut sent_at = BTreeSet::new();
    if !matches!(facts.scenario.end, End::UntilEmpty) {
        return last;
    }
    let looks =
        facts.calls_of(Operation::Stats).filter_map(|call| call.replied.as_ref());
    sent_at.extend(looks.map(|(replied, _)| replied.at));
    for call in facts.calls_of(Operation::Recover) {
        if sent_at.contains(&call.sent.at) {
            last.insert(call.sent.index);
            sent_at.extend(call.replied.as_ref().map(|(replied, _)| replied.at));
        }
    }
    last
}

/// The shortest and the longest time that may pass until the next recovery.
fn pause(facts: &Facts, next_in: Option<Duration>) -> (Duration, Duration) {
    let settings = &facts.scenario.settings;
    let by_lease = (ms(settings.lease) / 2).clamp(ms(1000), ms(30_000));
    let interval = settings.reap_every.map_or(by_lease, ms);
    let soonest = interval.min(ms(1000));
    let soon = next_in.map(|next_in| next_in.max(soonest));
    let early = soon.map_or(interval / 2, |soon| soon.min(interval / 2));
    let late = soon.map_or(interval, |soon| soon.min(interval));
    (early, late)
}
