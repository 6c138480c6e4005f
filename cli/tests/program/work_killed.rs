//! `relq work`, killed with SIGKILL, or its server.

use std::{collections::BTreeSet, fs, thread, time::Duration};

use crate::{
    on_each_store,
    relq::{Store, wait_until},
};

on_each_store! {
    /// R1, R9: whenever the worker dies, no job is lost.
    fn a_worker_killed_at_any_time_loses_nothing(store) {
        let lines: String = (0..300).map(|n| format!("{n}\n")).collect();
        store.relq("push --quiet --file -").input(lines).ok();
        let script = "echo $(cat) >> done";
        let line = ["work", "--lease", "1s", "--exec", "sh", "-c", script];
        for round in 0..8_u64 {
            let mut worker = store.relq_with(&line).start();
            // From before the first claim to the middle of the work.
            thread::sleep(Duration::from_millis(round * round * 4));
            worker.kill();
        }
        let last = ["work", "--lease", "1s", "--until-empty", "--exec", "sh", "-c", script];
        store.relq_with(&last).ok();

        let done = fs::read_to_string(store.file("done")).unwrap();
        let done: BTreeSet<u32> = done.lines().map(|n| n.parse().unwrap()).collect();
        assert!(done.into_iter().eq(0..300));
        assert_eq!(store.count("default", "finished"), 300);
        assert_eq!(store.relq("audit --json").json()["jobs"], 0);
    }

    /// R11: a job that kills its worker each time is buried.
    fn a_job_that_kills_its_worker_is_buried_with_the_reason(store) {
        store.push("poison --max-attempts 3");
        let line = ["work", "--lease", "500ms", "--exec", "sh", "-c", "kill -9 $PPID"];
        for attempt in 1..=3 {
            let mut worker = store.relq_with(&line).start();
            let ended = worker.end();
            assert_eq!(ended.code, None, "attempt {attempt}: {}", ended.err);
        }
        wait_until("the reaper buries it", || {
            store.relq("recover").ok();
            store.count("default", "dead") == 1
        });
        let dead = &store.relq("dead list --json").json()[0];
        assert_eq!(dead["payload"], "poison");
        assert_eq!(dead["attempt"], 3);
        let reason = dead["reason"].as_str().unwrap();
        assert!(reason.contains("attempt"), "{reason}");
        let shown = store.relq("dead list").ok();
        assert!(shown.contains(reason), "{shown}");
    }
}

/// R1, R21: the worker goes on by itself when its server is back.
#[test]
fn a_worker_outlives_its_server() {
    let mut store =
        Store::redis_with(&["--appendonly", "yes", "--appendfsync", "always"]);
    let lines: String = (0..200).map(|n| format!("{n}\n")).collect();
    store.relq("push --quiet --file -").input(lines).ok();
    let script = "sleep 0.1; echo $(cat) >> done";
    let line = ["work", "--lease", "1s", "--until-empty", "--exec", "sh", "-c", script];
    let mut worker = store.relq_with(&line).start();
    for finished in [20, 60, 100] {
        wait_until("it works", || store.count("default", "finished") >= finished);
        store.server().kill();
        worker.wait_for_error("WARN");
        store.server().restart();
    }
    assert_eq!(worker.end().code, Some(0));

    let done = fs::read_to_string(store.file("done")).unwrap();
    let done: BTreeSet<u32> = done.lines().map(|n| n.parse().unwrap()).collect();
    assert!(done.into_iter().eq(0..200));
}
