//! `relq work`, when it is told to stop, or must stop a command.

use std::fs;

use rustix::process::Signal;

use crate::{
    on_each_store,
    relq::{Running, Store, is_alive, wait_until},
};

/// Tells its process ids, and waits for ever in a process that it started.
const STUBBORN: &str = "sleep 1000 & echo $$ $! > ids; wait";

/// A worker whose command has told its ids.
fn work(store: &Store, flags: &[&str], script: &str) -> (Running, Vec<i32>) {
    let mut line = vec!["work"];
    line.extend(flags);
    line.extend(["--exec", "sh", "-c", script]);
    let worker = store.relq_with(&line).start();
    let mut ids = Vec::new();
    wait_until("the command runs", || {
        let text = fs::read_to_string(store.file("ids")).unwrap_or_default();
        ids = text.split_whitespace().map(|id| id.parse().unwrap()).collect();
        text.ends_with('\n')
    });
    (worker, ids)
}

fn wait_for_the_end_of(ids: &[i32]) {
    wait_until("the group has ended", || !ids.iter().any(|id| is_alive(*id)));
}

on_each_store! {
    fn a_command_that_takes_too_long_is_stopped_with_all_it_started(store) {
        store.push("job --max-attempts 1");
        let flags = ["--timeout", "300ms", "--until-empty"];
        let (mut worker, ids) = work(store, &flags, STUBBORN);
        assert_eq!(ids.len(), 2);
        assert_eq!(worker.end().code, Some(0));
        wait_for_the_end_of(&ids);
        let dead = &store.relq("dead list --json").json()[0];
        let error = dead["last_error"].as_str().unwrap();
        assert!(error.contains("took longer than 300ms"), "{error}");
    }

    fn a_command_that_ignores_sigterm_is_killed(store) {
        store.push("job --max-attempts 1");
        let flags = ["--timeout", "100ms", "--until-empty"];
        let script = "trap '' TERM; echo $$ > ids; while :; do sleep 0.1; done";
        let (mut worker, ids) = work(store, &flags, script);
        assert_eq!(worker.end().code, Some(0));
        wait_for_the_end_of(&ids);
    }

    fn a_cancelled_job_has_its_command_stopped(store) {
        let id = &store.push("job")[0];
        let flags = ["--lease", "500ms", "--until-empty"];
        let (mut worker, ids) = work(store, &flags, STUBBORN);
        store.relq_with(&["cancel", id]).ok();
        let ended = worker.end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        wait_for_the_end_of(&ids);
        assert_eq!(store.count("default", "cancelled"), 1);
        assert_eq!(store.count("default", "dead"), 0);
    }

    /// R7: a worker whose lease was lost stops its command.
    fn a_lost_lease_has_its_command_stopped(store) {
        store.push("job");
        let (mut worker, ids) = work(store, &["--lease", "500ms"], STUBBORN);
        store.relq("purge --yes").ok();
        wait_for_the_end_of(&ids);
        worker.signal(Signal::TERM);
        assert_eq!(worker.end().code, Some(0));
    }

    /// R24: a first signal lets the command finish.
    fn a_first_signal_lets_the_command_finish(store) {
        store.push("job");
        store.push("other");
        let script = "echo $$ > ids; while ! test -e go; do sleep 0.05; done; cat";
        let (mut worker, _) = work(store, &["--concurrency", "1"], script);
        worker.signal(Signal::TERM);
        worker.wait_for_error("stopping");
        fs::write(store.file("go"), "").unwrap();
        let ended = worker.end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert_eq!(ended.out, b"job");
        assert_eq!(store.count("default", "finished"), 1);
        assert_eq!(store.count("default", "ready"), 1);
    }

    /// R24: a second signal kills it, and the job goes back uncounted.
    fn a_second_signal_kills_the_command_and_gives_the_job_back(store) {
        store.push("job");
        let (mut worker, ids) = work(store, &[], STUBBORN);
        worker.signal(Signal::INT);
        // Two signals that are pending at once count as one.
        worker.wait_for_error("stopping");
        assert!(ids.iter().all(|id| is_alive(*id)));
        worker.signal(Signal::INT);
        let ended = worker.end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        wait_for_the_end_of(&ids);
        let job = &store.relq("peek --json").json()[0];
        assert_eq!(job["attempt"], 0, "{}", ended.err);
    }
}
