//! The list of the cases, which the unit tests of the library do not have.

use std::{collections::BTreeSet, sync::Arc};

use relq_conformance::{Profile, Scope, Subject, Tests, async_trait, cases, sweep};
use relq_core::{Error, Queue, QueueName, environment::Environment};

/// Every case or act that `HAZARDS.md` names exists.
#[test]
fn the_cases_of_the_hazards_exist() {
    let hazards = include_str!("../HAZARDS.md");
    let named = hazards.split('`').filter(|words| words.contains("::"));
    let ids: BTreeSet<_> = cases().iter().map(|case| case.id.to_owned()).collect();
    let acts: BTreeSet<_> =
        sweep::names().map(|name| format!("steps::{name}")).collect();

    let unknown: Vec<_> =
        named.filter(|id| !ids.contains(*id) && !acts.contains(*id)).collect();

    assert_eq!(unknown, [""; 0]);
}

#[test]
fn every_id_is_used_once() {
    let ids: BTreeSet<_> = cases().iter().map(|case| case.id).collect();

    assert_eq!(ids.len(), cases().len());
}

#[test]
fn an_entry_says_what_its_line_says() {
    let case = cases().iter().find(|case| case.id == "waiting::a_plain_push_wakes");
    let case = case.expect("the case exists");

    assert_eq!(case.rules, ["R21"]);
    assert_eq!(case.scope, Scope::Redis);
    assert!(case.is_in_real_time);
}

/// An embedded backend whose author has implemented only what is required.
#[derive(Default)]
struct Plain;

#[async_trait]
impl Subject for Plain {
    async fn connect(
        &self,
        _: &str,
        _: &QueueName,
        _: &Environment,
    ) -> Result<Arc<dyn Queue>, Error> {
        unreachable!("no test of it runs")
    }
}

/// Tests that an embedded backend does not run, because its `Subject` lacks a method, are
/// listed as ignored with that reason. So its author sees what is not tested.
#[test]
fn what_a_plain_embedded_backend_lacks_is_listed() {
    let tests = format!("{:?}", Tests::conformance::<Plain>(Profile::Embedded));
    let acts = sweep::names()
        .map(|act| format!("steps::{act}, ignored: no Subject::processes"));
    let counted = cases().iter().filter(|case| case.scope == Scope::Counted);
    let counted: Vec<_> = counted
        .map(|case| format!("{}, ignored: no Subject::records", case.id))
        .collect();

    assert!(!counted.is_empty());
    let missing: Vec<_> =
        acts.chain(counted).filter(|test| !tests.contains(test)).collect();
    assert_eq!(missing, [""; 0], "{tests}");
}
