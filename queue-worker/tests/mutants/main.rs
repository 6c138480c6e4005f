//! The mutants of the worker: each is a small change that breaks one promise.
//!
//! These tests check that each change still fits the sources exactly once.
//! `scripts/mutants worker` applies one change at a time to a copy of the repository,
//! and writes which check of `tests/reference` catches it to `MUTANTS.md`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

mod mutant;
mod table;

use std::{fs, path::Path};

use mutant::Mutant;
use table::MUTANTS;

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn each_mutant_fits_the_sources_exactly_once() {
    mutant::assert_each_fits(&Path::new(PACKAGE).join("src"), &all());
}

/// Each mutant names a check of `tests/reference`, or a unit test, that exists.
#[test]
fn each_mutant_names_a_promise_that_is_checked() {
    let checks = Path::new(PACKAGE).join("tests/reference/checks");
    let sources: String = fs::read_dir(checks)
        .unwrap()
        .map(|file| fs::read_to_string(file.unwrap().path()).unwrap())
        .collect();
    let folder = Path::new(PACKAGE).join("src");
    let of_reference = |one: &&Mutant| !mutant::names_a_unit_test(&folder, one);
    for Mutant { name, promise, .. } in MUTANTS.iter().filter(of_reference) {
        let quoted = format!("\"{promise}\"");
        assert!(sources.contains(&quoted), "{name}: no check is named {promise}");
    }
}

#[test]
#[ignore = "prints the table for a script"]
fn list() {
    mutant::print(&all());
}

#[test]
#[ignore = "changes a copy of the sources, for a script"]
fn apply() {
    mutant::apply("queue-worker/src", &all());
}

fn all() -> Vec<&'static Mutant> {
    MUTANTS.iter().collect()
}
