//! Tests of the search through every order of commands: it finds races, and reaches
//! every state.
//!
//! In the random sequences no other call runs between two commands of a mutant, so only
//! the search catches these mutants.
#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod commands;
mod looks;
mod mutants;
mod races;

use std::{sync::Arc, thread};

use relq_conformance::{
    Profile, Subject,
    explore::{self, Faults, Limits},
    own::Zset,
    spec,
};

use self::{
    mutants::{MUTANTS, Mutant},
    races::RACES,
};

/// The search finds each mutant. The failure prints the decisions of its run, and the same
/// decisions lead to the same failure again. A picture of it shows each actor and the place
/// of each job.
#[test]
#[ignore = "takes a minute and tests the search itself: `.ci/run` runs it in turn"]
fn each_mutant_is_found_in_its_scene() {
    assert!(MUTANTS.iter().map(|mutant| mutant.name).eq(RACES.map(|race| race.0)));
    let half = MUTANTS.len() / 2;
    thread::scope(|scope| {
        scope.spawn(|| MUTANTS[..half].iter().for_each(is_found));
        MUTANTS[half..].iter().for_each(is_found);
    });
}

fn is_found(mutant: &Mutant) {
    let Mutant { name, words, faults, .. } = *mutant;
    let subject: Arc<dyn Subject> = Arc::new(*mutant);

    let explored =
        explore::explore_within(&subject, mutant.scene(), &Limits::of(faults));

    let explored = explored.unwrap().unwrap();
    let failure = explored.failure.unwrap_or_else(|| panic!("missed: {name}"));
    println!("{name}, after {} runs: {failure}", explored.runs);
    assert!(failure.contains(words), "{name}: {failure}");
    assert!(!failure.starts_with("DETERMINISTIC"), "{name}: {failure}");
    assert!(failure.contains("replay: explore --scene"), "{name}: {failure}");
    let decisions = failure.rsplit('\'').nth(1).unwrap();
    let again = explore::replay(&subject, mutant.scene(), decisions).unwrap_err();
    assert_eq!(again.lines().next(), failure.lines().next(), "{name}");
    let picture = explored.picture.unwrap();
    for word in ["<svg", "time", "job ", "</svg>"] {
        assert!(picture.contains(word), "{name}: {word}: {picture}");
    }
    if mutant.scene() == "settle_against_recover" {
        for word in ["WorkerA", "Reaper", "job 1 leased"] {
            assert!(picture.contains(word), "{name}: {word}: {picture}");
        }
    }
}

/// If `RANDOMKEY` returns all keys in sorted order, no order of the commands shows that
/// the mutant relies on them.
#[test]
fn sorted_answers_hide_a_mutant() {
    let mutant = MUTANTS.into_iter().find(|mutant| mutant.faults.draws > 0).unwrap();
    let subject: Arc<dyn Subject> = Arc::new(mutant);

    let explored = explore::explore(&subject, mutant.scene(), 0).unwrap().unwrap();

    assert_eq!(explored.failure, None);
}

/// Random sequences, in which calls do not overlap, do not catch these mutants.
#[test]
#[ignore = "takes minutes; it shows that the mutants need the search"]
fn the_model_does_not_find_the_mutants() {
    let found = MUTANTS.into_iter().filter_map(|mutant| {
        let judged = spec::judge_random(Arc::new(mutant), Profile::Redis);
        Some((mutant.name, judged.err()?))
    });

    assert_eq!(found.collect::<Vec<_>>(), []);
}

/// A search that ends a run at a known state finds the same final states as a search
/// that does not.
#[test]
#[ignore = "takes a minute and tests the search itself: `.ci/run` runs it in turn"]
fn a_pruned_search_finds_the_same_ends() {
    let subject: Arc<dyn Subject> = Arc::new(Zset);
    let none = Faults::default();
    for (scene, faults) in [
        ("extend_against_recover", none),
        ("extend_against_recover", Faults::deaths(1)),
        (
            "p push j | a claim 1 l0 | b claim 1 l0; b settle 0D",
            Faults { late: 1, ..none },
        ),
        (
            "p push j | a claim 1 l0; a settle 0D | o cancel 0",
            Faults { cuts: 1, ..none },
        ),
        ("p push j; p cancel 0 | a claim 1 l0 w1 | p push j", none),
        ("p push j; p cancel 0 | a claim 1 l0 w1 | p push j", Faults::deaths(1)),
    ] {
        let [pruned, whole] = explore::ends(&subject, scene, faults)
            .unwrap_or_else(|wrong| panic!("{scene}, {faults:?}: {wrong}"));

        assert!(pruned.runs < whole.runs, "{scene}: {pruned:?}, {whole:?}");
        assert_eq!(pruned.ends, whole.ends, "{scene}");
    }
}

/// A search that may know few states stops, and reports that it is bounded.
#[test]
fn a_search_is_bounded_by_its_states() {
    let subject: Arc<dyn Subject> = Arc::new(Zset);
    let mut limits = Limits::of(Faults::default());
    limits.states = 10;

    let explored = explore::explore_within(&subject, "settle_against_recover", &limits);

    let explored = explored.unwrap().unwrap();
    assert!(explored.is_bounded && explored.states < 40, "{explored:?}");
    assert!(explored.to_string().ends_with("bounded by states"), "{explored}");
}

/// The random runs of a large scene depend only on the seed, and break no rule.
#[test]
fn random_runs_depend_on_the_seed() {
    let subject: Arc<dyn Subject> = Arc::new(Zset);
    let scene = explore::large_scenes().next().unwrap();

    let explored = [(); 2].map(|()| {
        let faults = Faults::deaths(1);
        explore::explore_random(&subject, scene, faults, (7, 5)).unwrap().unwrap()
    });

    assert_eq!(explored[0].failure, None);
    assert_eq!(explored[0].longest, explored[1].longest);
}

/// The decisions of a shown failure are the fewest with which it can happen, and the search
/// has proven it.
#[test]
fn a_failure_is_the_simplest() {
    let mutant = MUTANTS.into_iter().find(|mutant| mutant.name == "peek, then move");
    let subject: Arc<dyn Subject> = Arc::new(mutant.unwrap());
    let scene = "p push j,j | a claim 1 l0 | b claim 1 l0 | o stats";

    let mut limits = Limits::of(Faults::default());
    limits.proof_runs = 2_000;
    let explored = explore::explore_within(&subject, scene, &limits);

    let failure = explored.unwrap().unwrap().failure.unwrap();
    assert!(failure.contains("no simpler run fails in this way"), "{failure}");
    let decisions = failure.rsplit('\'').nth(1).unwrap();
    let changes = decisions.split(' ').collect::<Vec<_>>();
    let changes = changes.windows(2).filter(|two| two[0] != two[1]).count();
    assert_eq!(changes, 3, "{failure}");
}
