//! `relq import` that a signal stops while it stores jobs.

use rustix::process::Signal;
use serde_json::json;

use crate::{
    export::{file_of, job},
    on_each_store,
    relq::wait_until,
};

const JOBS: u64 = 60_000;

on_each_store! {
    /// A signal ends an import between two calls. What it says of the stored jobs is true, the
    /// queue stays paused, and a resumed import stores the rest.
    fn a_signal_stops_an_import_between_two_calls(store) {
        let lines: Vec<_> = (0..JOBS).map(|n| job(&format!("j{n}"), "")).collect();
        std::fs::write(store.file("jobs.jsonl"), file_of(&lines)).unwrap();
        store.create();
        let mut running = store.relq("import jobs.jsonl").start();
        wait_until("some jobs are stored", || store.count("default", "ready") > 0);

        running.signal(Signal::TERM);

        let ended = running.end_by_itself();
        let stored = store.count("default", "ready");
        assert_eq!(ended.code, Some(1), "{}", ended.err);
        assert!(stored < JOBS, "stopped too late");
        let words = format!(
            "the import was stopped: by a signal; it stored {stored} jobs, and 0 were there \
             before"
        );
        assert!(ended.err.contains(&words), "{stored}: {}", ended.err);
        assert!(ended.err.contains("repeat the import with --resume"), "{}", ended.err);
        assert_eq!(store.relq("stats --json").json()["paused"], json!(true));

        let report = store.relq("import jobs.jsonl --resume --json").json();

        assert_eq!(report["stored"], json!(JOBS - stored), "{report}");
        assert_eq!(report["known"], json!(stored), "{report}");
        assert_eq!(store.count("default", "ready"), JOBS);
    }
}
