//! A mutant, and what a table of mutants must keep. The program's table uses this file
//! too.

use std::{collections::BTreeSet, env, fs, path::Path};

/// A change of one source file that breaks a promise, and the check that must catch it.
pub(crate) struct Mutant {
    pub(crate) name: &'static str,
    /// The check: `unit TEST: WORDS` for a unit test and words of its message, and
    /// otherwise what the package's table says.
    pub(crate) promise: &'static str,
    pub(crate) file: &'static str,
    /// The text to replace, which occurs in the file exactly once.
    pub(crate) old: &'static str,
    pub(crate) new: &'static str,
}

/// Asserts that each mutant has a name of its own and fits the sources in `folder`.
pub(crate) fn assert_each_fits(folder: &Path, mutants: &[&Mutant]) {
    for Mutant { name, file, old, new, .. } in mutants {
        let source = fs::read_to_string(folder.join(file)).unwrap();
        let found = source.matches(old).count();
        assert_eq!(found, 1, "{name}: {file} has its text {found} times");
        assert_ne!(old, new, "{name} changes nothing");
    }
    let names: BTreeSet<_> = mutants.iter().map(|mutant| mutant.name).collect();
    assert_eq!(names.len(), mutants.len(), "two mutants have one name");
}

/// If the mutant names a unit test, asserts that the sources in `folder` have it, and
/// returns true.
pub(crate) fn names_a_unit_test(folder: &Path, mutant: &Mutant) -> bool {
    let Mutant { name, promise, .. } = mutant;
    let Some(test) = promise.strip_prefix("unit ") else { return false };
    let (path, words) = test.split_once(": ").unwrap();
    let (module, function) = path.split_once("::tests::").unwrap();
    let file = folder.join(module.replace("::", "/")).with_extension("rs");
    let source = fs::read_to_string(file).unwrap();
    assert!(source.contains(&format!("fn {function}(")), "{name}: no test is {path}");
    assert!(!words.is_empty(), "{name}: no words of the message");
    true
}

/// Prints the table, one mutant in each line, for `scripts/mutants`.
pub(crate) fn print(mutants: &[&Mutant]) {
    for Mutant { name, promise, .. } in mutants {
        println!("mutant|{name}|{promise}");
    }
}

/// Applies the mutant that `RELQ_MUTANT` names to the copy of the repository in the
/// folder `RELQ_MUTANT_COPY`. `sources` is the folder of the files in the table.
pub(crate) fn apply(sources: &str, mutants: &[&Mutant]) {
    let name = env::var("RELQ_MUTANT").unwrap();
    let copy = env::var("RELQ_MUTANT_COPY").unwrap();
    let mutant = mutants.iter().find(|mutant| mutant.name == name).unwrap();
    let path = Path::new(&copy).join(sources).join(mutant.file);
    let source = fs::read_to_string(&path).unwrap();
    fs::write(path, source.replacen(mutant.old, mutant.new, 1)).unwrap();
}
