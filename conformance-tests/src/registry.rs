//! The list of all cases, with the facts that a report shows about them.

use std::{fmt, future::Future, pin::Pin};

use relq_core::capabilities::Capability;

use crate::{
    Need, bad_input, batches, cancel_safety, clocks, dead_letters, delay, expiry,
    idempotence, isolation, leases, no_loss, one_holder, operator, order, owner, races,
    recovery, settle_and_claim, stalled, stats, store::Store, unique, unique_expiry,
    unique_moves, waiting, worker_release,
};

type Run = for<'a> fn(&'a Store) -> Pin<Box<dyn Future<Output = ()> + Send + 'a>>;

/// One promise, and the code that judges it.
pub struct Case {
    /// `topic::name`; stable, so that reports of two versions can be compared.
    pub id: &'static str,
    /// The rules that it judges, by their numbers in the contract: `R7`.
    pub rules: &'static [&'static str],
    /// What a backend must support or declare for the case to be run.
    pub needs: &'static [Need],
    /// The stores that the case applies to.
    pub scope: Scope,
    pub(crate) run: Run,
}

/// The stores that a case applies to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Scope {
    /// All stores.
    Every,
    /// Stores on Redis.
    Redis,
    /// Embedded stores.
    Embedded,
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.id, self.rules.join(", "))
    }
}

/// Every case of the suite, in the order of its topics.
pub fn cases() -> &'static [Case] {
    CASES
}

macro_rules! need {
    (Order) => {
        Need::Order
    };
    (Fifo) => {
        Need::Fifo
    };
    (JobLease) => {
        Need::JobLease
    };
    ($option:ident) => {
        Need::Option(Capability::$option)
    };
}

macro_rules! scope {
    () => {
        Scope::Every
    };
    (redis) => {
        Scope::Redis
    };
    (embedded) => {
        Scope::Embedded
    };
}

macro_rules! registry {
    ([] $($topic:ident { $($case:ident: $($rule:ident)+
        $(=> $($need:ident)+)? $(@ $scope:ident)?;)* })*) => {
        const CASES: &[Case] = &[$($(Case {
            id: concat!(stringify!($topic), "::", stringify!($case)),
            rules: &[$(stringify!($rule)),+],
            needs: &[$($(need!($need)),+)?],
            scope: scope!($($scope)?),
            run: |store| Box::pin($topic::$case(store)),
        },)*)*];
    };
}
pub(crate) use registry as __registry;

crate::__with_cases!(registry::__registry![]);

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    const SOURCES: [(&str, &str); 35] = [
        ("no_loss", include_str!("no_loss.rs")),
        ("idempotence", include_str!("idempotence/ids.rs")),
        ("idempotence", include_str!("idempotence/tokens.rs")),
        ("unique", include_str!("unique.rs")),
        ("unique_moves", include_str!("unique_moves.rs")),
        ("unique_expiry", include_str!("unique_expiry.rs")),
        ("one_holder", include_str!("one_holder.rs")),
        ("leases", include_str!("leases.rs")),
        ("settle_and_claim", include_str!("settle_and_claim.rs")),
        ("recovery", include_str!("recovery.rs")),
        ("worker_release", include_str!("worker_release.rs")),
        ("races", include_str!("races.rs")),
        ("cancel_safety", include_str!("cancel_safety.rs")),
        ("stalled", include_str!("stalled.rs")),
        ("order", include_str!("order.rs")),
        ("delay", include_str!("delay.rs")),
        ("expiry", include_str!("expiry.rs")),
        ("clocks", include_str!("clocks.rs")),
        ("waiting", include_str!("waiting.rs")),
        ("isolation", include_str!("isolation/queues.rs")),
        ("isolation", include_str!("isolation/plain.rs")),
        ("owner", include_str!("owner.rs")),
        ("operator", include_str!("operator.rs")),
        ("dead_letters", include_str!("dead_letters.rs")),
        ("stats", include_str!("stats.rs")),
        ("bad_input", include_str!("bad_input.rs")),
        ("batches", include_str!("batches/anything.rs")),
        ("batches", include_str!("batches/asking.rs")),
        ("batches", include_str!("batches/cancelling.rs")),
        ("batches", include_str!("batches/completing.rs")),
        ("batches", include_str!("batches/counting.rs")),
        ("batches", include_str!("batches/keeping.rs")),
        ("batches", include_str!("batches/making.rs")),
        ("batches", include_str!("batches/serving.rs")),
        ("batches", include_str!("batches/waking.rs")),
    ];

    /// The cases that the sources define: id, and the rules of the doc line.
    fn written() -> BTreeSet<(String, String)> {
        let mut written = BTreeSet::new();
        for (topic, source) in SOURCES {
            let mut rules = String::new();
            for line in source.lines() {
                if let Some(named) = rules_of(line) {
                    rules = named.to_owned();
                }
                if let Some(name) = case_name(line) {
                    written.insert((format!("{topic}::{name}"), rules.clone()));
                }
            }
        }
        written
    }

    /// `/// R7, B2: a promise` names two rules.
    fn rules_of(line: &str) -> Option<&str> {
        let doc = line.strip_prefix("/// ")?;
        let is_rule = |rule: &str| {
            let number = rule.strip_prefix(['R', 'B']);
            number.is_some_and(|it| it.parse::<u8>().is_ok())
        };
        let (rules, _) = doc.split_once(':')?;
        rules.split(", ").all(is_rule).then_some(rules)
    }

    /// A case takes a store and returns nothing.
    fn case_name(line: &str) -> Option<&str> {
        let (name, rest) =
            line.strip_prefix("pub(crate) async fn ")?.split_once('(')?;
        (rest.trim_start_matches('_') == "store: &Store) {").then_some(name)
    }

    #[test]
    fn the_list_and_the_sources_agree() {
        let listed: BTreeSet<_> = cases()
            .iter()
            .map(|case| (case.id.to_owned(), case.rules.join(", ")))
            .collect();

        let written = written();

        let difference: Vec<_> = listed.symmetric_difference(&written).collect();
        assert_eq!(difference, Vec::<&(String, String)>::new());
    }

    /// Every case that the table of known bugs names exists.
    #[test]
    fn the_cases_of_the_hazards_exist() {
        let hazards = include_str!("../HAZARDS.md");
        let named = hazards.split('`').filter(|words| words.contains("::"));
        let ids: BTreeSet<_> = cases().iter().map(|case| case.id.to_owned()).collect();
        let acts = crate::steps::SCENARIOS.iter();
        let acts: BTreeSet<_> =
            acts.map(|act| format!("steps::{}", act.name)).collect();

        let unknown: Vec<_> =
            named.filter(|id| !ids.contains(*id) && !acts.contains(*id)).collect();

        assert_eq!(unknown, [""; 0]);
    }

    #[test]
    fn every_id_is_used_once() {
        let ids: BTreeSet<_> = cases().iter().map(|case| case.id).collect();

        assert_eq!(ids.len(), cases().len());
    }
}
