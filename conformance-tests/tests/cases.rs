//! The list of the cases, which the unit tests of the library do not have.

use std::collections::BTreeSet;

use relq_conformance::{Scope, cases, sweep};

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
