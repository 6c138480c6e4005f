//! Checks that the observer receives each event once, as the summary counts it.

use crate::{facts::Facts, observed::Events, report::Violations};

const TOLD: (&str, &str) = ("tells_each_event_once", "Observer");

pub(crate) fn check(facts: &Facts, violations: &mut Violations) {
    let Some((over, _, summary)) = &facts.over else { return };
    let Events { claimed, started, ended, timed, buried, released } = &facts.observed;
    let of = |name: &str| ended.get(name).copied().unwrap_or(0);
    let handlers: usize = facts.held.values().map(|held| held.started.len()).sum();
    let deliveries = facts.held.len() as u64;
    let counts = [
        ("done", summary.done, of("done")),
        ("retried", summary.retried, of("retried")),
        ("dead", summary.dead, of("buried")),
        ("discarded", summary.discarded, of("discarded")),
        ("postponed", summary.postponed, of("postponed")),
        ("cancelled", summary.cancelled, of("cancelled")),
        ("lost", summary.lost, of("lost")),
        ("uncertain", summary.uncertain, of("uncertain")),
        ("given back", summary.given_back, of("given_back") + released),
        ("ended", *claimed, ended.values().sum()),
        ("started", handlers as u64, *started),
        ("timed", *started, *timed),
        ("buried", of("buried"), *buried),
    ];
    for (name, expected, told) in counts {
        violations.check(TOLD, over.at, expected == told, || {
            format!("{name} is {expected}, and the observer was told {told}")
        });
    }
    violations.check(TOLD, over.at, *claimed <= deliveries, || {
        format!("{claimed} jobs are told as claimed, and {deliveries} were delivered")
    });
}
