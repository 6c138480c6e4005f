//! The mutants of the program: each is a small change that breaks one promise.
//!
//! These tests check that each change still fits the sources exactly once.
//! `scripts/mutants program` applies one change at a time to a copy of the repository,
//! and writes which test of the program catches it to `MUTANTS.md`.

#![allow(clippy::unwrap_used, reason = "a test fails by panicking")]

#[path = "../../../queue-worker/tests/mutants/mutant.rs"]
mod mutant;
mod table;

use std::{fs, path::Path};

use mutant::Mutant;

const PACKAGE: &str = env!("CARGO_MANIFEST_DIR");

#[test]
fn each_mutant_fits_the_sources_exactly_once() {
    mutant::assert_each_fits(&Path::new(PACKAGE).join(".."), &table::all());
}

/// Each mutant names a test of `tests/program` and words of its message, as
/// `module::store::test: words`, or a unit test.
#[test]
fn each_mutant_names_a_test_that_exists() {
    let folder = Path::new(PACKAGE).join("src");
    let of_program = |one: &&'static Mutant| !mutant::names_a_unit_test(&folder, one);
    for Mutant { name, promise, .. } in table::all().into_iter().filter(of_program) {
        let (test, words) = promise.split_once(": ").unwrap();
        let module = test.split("::").next().unwrap();
        let function = test.rsplit("::").next().unwrap();
        let file = Path::new(PACKAGE).join("tests/program").join(module);
        let source = fs::read_to_string(file.with_extension("rs")).unwrap();
        let is_there = source.contains(&format!("fn {function}("));
        assert!(is_there, "{name}: there is no test {test}");
        assert!(!words.is_empty(), "{name}: no words of the message");
    }
}

#[test]
#[ignore = "prints the table for a script"]
fn list() {
    mutant::print(&table::all());
}

#[test]
#[ignore = "changes a copy of the sources, for a script"]
fn apply() {
    mutant::apply("", &table::all());
}
