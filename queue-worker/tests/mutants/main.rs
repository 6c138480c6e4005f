//! The mutants of the worker: each is a small change that breaks one promise.
//!
//! These tests check that each change still fits the sources exactly once.
//! `scripts/worker-mutants` applies one change at a time to a copy of the repository,
//! and writes which check of `tests/reference` catches it to `MUTANTS.md`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod table;

use std::{
    collections::BTreeSet,
    env, fs,
    path::{Path, PathBuf},
};

use table::{MUTANTS, Mutant};

#[test]
fn each_mutant_fits_the_sources_exactly_once() {
    for mutant in MUTANTS {
        let source =
            fs::read_to_string(path(env!("CARGO_MANIFEST_DIR"), mutant)).unwrap();
        let found = source.matches(mutant.old).count();
        let Mutant { name, file, .. } = mutant;
        assert_eq!(found, 1, "{name}: {file} has its text {found} times");
        assert_ne!(mutant.old, mutant.new, "{name} changes nothing");
    }
}

#[test]
fn each_mutant_has_a_name_of_its_own() {
    let names: BTreeSet<_> = MUTANTS.iter().map(|mutant| mutant.name).collect();
    assert_eq!(names.len(), MUTANTS.len());
}

/// The check that must catch a mutant exists.
#[test]
fn each_mutant_names_a_promise_that_is_checked() {
    let checks = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/reference/checks");
    let sources: String = fs::read_dir(checks)
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    for Mutant { name, promise, .. } in MUTANTS {
        let quoted = format!("\"{promise}\"");
        assert!(sources.contains(&quoted), "{name}: no check is named {promise}");
    }
}

/// Prints a line for each mutant. For `scripts/worker-mutants`.
#[test]
#[ignore = "prints the table for a script"]
fn list() {
    for Mutant { name, promise, .. } in MUTANTS {
        println!("mutant|{name}|{promise}");
    }
}

/// Applies the mutant of the variable `RELQ_WORKER_MUTANT` to the copy of the package in
/// `RELQ_WORKER_COPY`.
#[test]
#[ignore = "changes a copy of the sources, for a script"]
fn apply() {
    let name = env::var("RELQ_WORKER_MUTANT").unwrap();
    let copy = env::var("RELQ_WORKER_COPY").unwrap();
    let mutant = MUTANTS.iter().find(|mutant| mutant.name == name).unwrap();
    let path = path(&copy, mutant);
    let source = fs::read_to_string(&path).unwrap();
    fs::write(path, source.replacen(mutant.old, mutant.new, 1)).unwrap();
}

fn path(package: &str, mutant: &Mutant) -> PathBuf {
    Path::new(package).join("src").join(mutant.file)
}
