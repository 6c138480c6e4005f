//! `relq push` when its output cannot be written, as on a full disk.

use std::fs::File;

use crate::{
    on_each_store,
    relq::{Ended, Store},
};

/// Runs the program with an output that takes nothing.
fn on_full_disk(store: &Store, line: &str) -> Ended {
    let full = File::options().write(true).open("/dev/full").unwrap();
    store.relq(line).start_on(full).end()
}

on_each_store! {
    /// The ids cannot be printed, so the error must say where the user can continue.
    fn a_push_that_cannot_print_says_how_many_lines_are_stored(store) {
        store.create();
        let lines: String = (0..2500).map(|n| format!("{n}\n")).collect();
        std::fs::write(store.file("lines"), lines).unwrap();
        let ended = on_full_disk(store, "push --file lines");
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        let stored = store.count("default", "ready");
        let words = format!(
            "the first {stored} lines are stored, so go on with line {}", stored + 1
        );
        assert!(ended.err.contains("cannot write to standard output"), "{}", ended.err);
        assert!(ended.err.contains(&words), "{stored} are stored: {}", ended.err);
    }

    fn a_push_that_cannot_print_its_count_says_that_all_is_stored(store) {
        let ended = on_full_disk(store, "push --quiet a b");
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        assert!(ended.err.contains("all jobs are stored"), "{}", ended.err);
        assert_eq!(store.count("default", "ready"), 2);
    }
}
