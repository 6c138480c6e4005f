//! `relq push`, `relq work` and `relq import` when their output cannot be written, as on a
//! full disk.

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

    /// A job is done only when its output is printed, also if its command has ended before it
    /// could notice.
    fn a_job_whose_output_is_lost_is_tried_again(store) {
        store.push("a b c d --max-attempts 2");
        let line = "work --until-empty -c 4 --retry 1h --exec cat";

        let ended = on_full_disk(store, line);
        assert_eq!(ended.code, Some(4), "{}", ended.err);
        assert_eq!(store.count("default", "scheduled"), 4, "{}", ended.err);
        assert_eq!(store.count("default", "finished"), 0, "{}", ended.err);
        let job = &store.relq("list --state scheduled --json").json()[0];
        let error = "the output of the command could not be printed";
        assert_eq!(job["last_error"], error);

        store.push("-q closed e f");
        let line = "work -q closed --until-empty -c 4 --retry 1h --exec cat";
        let ended = store.relq(line).start_without_output().end();
        assert_eq!(ended.code, Some(4), "{}", ended.err);
        assert_eq!(store.count("closed", "scheduled"), 2, "{}", ended.err);

        // A command that prints nothing loses nothing.
        store.push("-q silent g");
        on_full_disk(store, "work -q silent --until-empty -c 4 --exec true");
        assert_eq!(store.count("silent", "finished"), 1);
    }

    /// An import whose report cannot be printed has stored its jobs, and must not leave the
    /// queue paused.
    fn an_import_that_cannot_print_its_report_resumes_the_queue(store) {
        store.push("-q from a b c");
        store.relq("pause -q from").ok();
        let lines = store.relq("export -q from").ok();
        std::fs::write(store.file("jobs.jsonl"), lines).unwrap();

        let ended = on_full_disk(store, "import jobs.jsonl -q to");

        assert_eq!(ended.code, Some(1), "{}", ended.err);
        assert!(ended.err.contains("cannot write to standard output"), "{}", ended.err);
        assert!(ended.err.contains("the import is done"), "{}", ended.err);
        assert_eq!(store.count("to", "ready"), 3);
        let paused = &store.relq("stats -q to --json").json()["paused"];
        assert_eq!(*paused, serde_json::json!(false));
    }
}
