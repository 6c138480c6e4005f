//! Mutants of the circular and the stream backend. Each has a bug that its pattern
//! makes easy.

use std::sync::Mutex;

use crate::{
    circular,
    judge::{compare, compare_pairs, inject, judge, search},
    mutant::{CaughtBy, Mutant},
    stream,
    table::in_parallel,
    turn::is_in_turn,
};

/// The mutants of each pattern.
pub(crate) const TRAPS: &[(&str, &[Mutant])] =
    &[("relq-circular", circular::MUTANTS), ("relq-stream", stream::MUTANTS)];

/// Runs a check on a mutant or the healthy backend. Returns its message, or `None` if
/// it passes.
fn said(by: &CaughtBy, mutant: Mutant) -> Option<String> {
    match by {
        CaughtBy::Case(case, _) => judge(mutant, case).err(),
        CaughtBy::Model(_) => compare(mutant).err(),
        CaughtBy::Pairs(_) => compare_pairs(mutant).err(),
        CaughtBy::Orders(scene, _) => search(mutant, scene).err(),
        CaughtBy::Act(act, _) => Some(inject(mutant, act))
            .filter(|all| !all.is_empty())
            .map(|all| all.join("\n")),
    }
}

/// Describes the problem if the check does not catch the mutant, or catches the healthy
/// backend. `None` if there is none.
fn wrong(mutant: &Mutant, by: &CaughtBy) -> Option<String> {
    let healthy = Mutant { patches: &[], overrides: None, ..*mutant };
    if let Some(words) = said(by, healthy) {
        return Some(format!("the healthy backend of {mutant:?} by {by}: {words}"));
    }
    let words = said(by, *mutant).unwrap_or_default();
    let is_caught = match by {
        CaughtBy::Case(_, expected)
        | CaughtBy::Model(expected)
        | CaughtBy::Pairs(expected)
        | CaughtBy::Orders(_, expected) => words.contains(expected),
        CaughtBy::Act(_, check) => check.is_in(&words),
    };
    (!is_caught).then(|| format!("{mutant:?} by {by}: {words:?}"))
}

#[test]
fn each_trap_is_caught_and_the_healthy_pattern_passes() {
    let mutants = TRAPS.iter().flat_map(|(_, mutants)| *mutants);
    let rows = mutants.flat_map(|one| one.caught_by.iter().map(move |by| (one, by)));
    let (rows, found): (Vec<_>, _) = (rows.collect(), Mutex::new(Vec::new()));

    in_parallel(rows.len(), |at| {
        let (mutant, by) = rows[at];
        if !is_in_turn(at) {
            return;
        }
        found.lock().unwrap().extend(wrong(mutant, by));
    });

    assert_eq!(found.into_inner().unwrap(), [""; 0]);
}
