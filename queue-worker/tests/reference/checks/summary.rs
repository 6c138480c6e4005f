//! Checks that the summary counts each delivery as the store answered it.

use std::collections::BTreeSet;

use relq_core::{
    Disposition,
    error::Operation,
    outcome::{Extended, Settled},
};
use relq_worker::Summary;

use crate::{
    facts::{Facts, Held, ROUNDING},
    report::{Violations, job},
};

const COUNTS: (&str, &str) = ("counts_the_truth", "Summary");

/// The counter of the summary under which a delivery is counted.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Count {
    Done,
    Retried,
    Dead,
    Discarded,
    Postponed,
    Cancelled,
    Lost,
    Uncertain,
    GivenBack,
    /// The delivery is in no counter: the release of the worker gave it back, or the
    /// worker ended before.
    None,
}

pub(crate) fn check(facts: &Facts, violations: &mut Violations) {
    let Some((over, _, summary)) = &facts.over else { return };
    let counts: Vec<_> = facts.held.values().map(|held| counts(facts, held)).collect();
    let released: u64 = facts
        .calls_of(Operation::ReleaseWorker)
        .filter_map(|call| call.replied.as_ref()?.1.released?.ok())
        .sum();
    for (count, seen) in by_count(summary) {
        let is_it = |counts: &&BTreeSet<Count>| counts.contains(&count);
        let is_sure = |counts: &&BTreeSet<Count>| counts.len() == 1;
        let more = if count == Count::GivenBack { released } else { 0 };
        let most = counts.iter().filter(is_it).count() as u64 + more;
        let least = counts.iter().filter(is_it).filter(is_sure).count() as u64 + more;
        violations.check(COUNTS, over.at, (least..=most).contains(&seen), || {
            let of_it = facts.held.values().zip(&counts);
            let of_it = of_it.filter(|(_, counts)| counts.contains(&count));
            let jobs: Vec<_> = of_it.map(|(held, _)| job(held)).collect();
            let bounds = format!("{least} to {most}");
            format!("{count:?} is {seen} and must be {bounds}: {jobs:?}, {released} released")
        });
    }
}

fn by_count(summary: &Summary) -> [(Count, u64); 9] {
    [
        (Count::Done, summary.done),
        (Count::Retried, summary.retried),
        (Count::Dead, summary.dead),
        (Count::Discarded, summary.discarded),
        (Count::Postponed, summary.postponed),
        (Count::Cancelled, summary.cancelled),
        (Count::Lost, summary.lost),
        (Count::Uncertain, summary.uncertain),
        (Count::GivenBack, summary.given_back),
    ]
}

/// Returns the counters of the summary that may include the delivery. In most cases
/// there is only one.
fn counts(facts: &Facts, held: &Held) -> BTreeSet<Count> {
    if let Some((_, Settled::Applied)) = facts.answer(held) {
        return [applied(facts, held)].into();
    }
    let is_uncertain = held.settles.iter().any(|&call| {
        let replied = facts.calls[call].replied.as_ref();
        let settled = replied.map(|(_, reply)| reply.settled.as_ref());
        // A call without a reply, or with an uncertain error, may have taken effect.
        settled.is_none_or(
            |settled| matches!(settled, Some(Err(refusal)) if refusal.is_uncertain),
        )
    });
    let unsettled = if is_uncertain { Count::Uncertain } else { Count::Lost };
    let answer = facts.answer(held).map(|(at, _)| at).or(facts.refused(held));
    let cancelled = facts
        .reported(held)
        .filter(|(_, end)| *end == Extended::Cancelled)
        .map(|(at, _)| at)
        .filter(|at| answer.is_none_or(|answer| at.at <= answer.at));
    if let Some(cancelled) = cancelled {
        // Two counters are allowed in two cases. Two replies that arrive at the same
        // time may be handled in either order, on different threads. And the lease may
        // have expired, by the worker's clock, before the cancellation was reported.
        let is_tie = answer.is_some_and(|answer| answer.at == cancelled.at);
        let is_over = facts.known_end(held, cancelled) <= cancelled.at + ROUNDING;
        let other = if is_tie || is_over { unsettled } else { Count::Cancelled };
        return [Count::Cancelled, other].into();
    }
    if answer.is_some() {
        return [unsettled].into();
    }
    let is_over = held.asked.is_some() || !held.settles.is_empty();
    if held.stopped().is_some() && is_over {
        return [unsettled].into();
    }
    // The worker ended before it had settled the job. Each of these is allowed then.
    [Count::Lost, Count::None, unsettled].into()
}

fn applied(facts: &Facts, held: &Held) -> Count {
    let last = *held.settles.last().expect("it was settled");
    let mut settlements = facts.calls[last].request.settlements.iter();
    let settled = settlements.find(|one| *one.receipt.token() == held.lease);
    match settled.expect("the call settles it").disposition {
        Disposition::Done | Disposition::DoneWith { .. } => Count::Done,
        Disposition::Retry { .. } if held.is_last => Count::Dead,
        Disposition::Retry { .. } => Count::Retried,
        Disposition::Dead { .. } => Count::Dead,
        Disposition::Discard => Count::Discarded,
        Disposition::Postpone { .. } => Count::Postponed,
        Disposition::GiveBack => Count::GivenBack,
    }
}
