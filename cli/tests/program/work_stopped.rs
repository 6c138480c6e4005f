//! Tests of `relq work` when it is asked to stop, and when it must stop a command.

use std::{
    fs,
    time::{Duration, Instant},
};

use rustix::process::Signal;

use crate::{
    on_each_store,
    relq::{Running, Store, is_alive, wait_until},
};

/// A command that writes its process ids to a file, and waits for ever in a child
/// process.
pub(crate) const STUBBORN: &str = "sleep 1000 & echo $$ $! > ids; wait";

/// A command that writes its process id to a file, and prints its payload when the file
/// `go` exists.
const UNTIL_GO: &str = "echo $$ > ids; while ! test -e go; do sleep 0.05; done; cat";

/// A command that writes its process id to a file, and cleans up when it gets SIGTERM:
/// it writes the file `cleaned`. The shell waits for `sleep` in the background, because it
/// runs a trap only after a command in the foreground has ended. Its standard error is not
/// the worker's: the shell reports there that `sleep` was ended, which would kill the shell
/// itself if the worker is dead.
pub(crate) const CLEANING: &str = "exec 2>/dev/null; \
    trap 'echo > cleaned; kill $!; exit 1' TERM; \
    echo $$ > ids; sleep 1000 & wait";

/// The time limit of a command that must have written its process ids before the limit
/// ends it.
const TIMEOUT: &str = "3s";

/// Starts a worker. Returns when its command has written its process ids, with these
/// ids.
pub(crate) fn work(store: &Store, flags: &[&str], script: &str) -> (Running, Vec<i32>) {
    let mut line = vec!["work"];
    line.extend(flags);
    line.extend(["--exec", "sh", "-c", script]);
    let worker = store.relq_with(&line).start();
    let ids = told_ids(store);
    (worker, ids)
}

/// Reads the process ids that a command has written. Returns an empty list if the
/// command has not written them yet.
fn told_ids(store: &Store) -> Vec<i32> {
    let mut ids = Vec::new();
    wait_until("the command runs", || {
        let text = fs::read_to_string(store.file("ids")).unwrap_or_default();
        ids = text.split_whitespace().map(|id| id.parse().unwrap()).collect();
        text.ends_with('\n')
    });
    ids
}

pub(crate) fn wait_for_the_end_of(ids: &[i32]) {
    wait_until("the group has ended", || !ids.iter().any(|id| is_alive(*id)));
}

on_each_store! {
    fn a_command_that_takes_too_long_is_stopped_with_all_it_started(store) {
        store.push("job --max-attempts 1");
        let flags = ["--timeout", TIMEOUT, "--until-empty"];
        let (mut worker, ids) = work(store, &flags, STUBBORN);
        assert_eq!(ids.len(), 2);
        assert_eq!(worker.end().code, Some(3));
        wait_for_the_end_of(&ids);
        let dead = &store.relq("dead list --json").json()[0];
        let error = dead["last_error"].as_str().unwrap();
        assert!(error.contains(&format!("took longer than {TIMEOUT}")), "{error}");
    }

    fn a_command_that_ignores_sigterm_is_killed(store) {
        store.push("job --max-attempts 1");
        let flags = ["--timeout", TIMEOUT, "--until-empty"];
        let script = "trap '' TERM; echo $$ > ids; while :; do sleep 0.1; done";
        let (mut worker, ids) = work(store, &flags, script);
        assert_eq!(worker.end().code, Some(3));
        wait_for_the_end_of(&ids);
    }

    /// A command that ends at once by SIGTERM may have started processes that ignore it.
    fn a_process_that_ignores_sigterm_ends_after_its_command(store) {
        store.push("job --max-attempts 1");
        let flags = ["--timeout", TIMEOUT, "--until-empty"];
        let script = "(trap '' TERM; while :; do sleep 0.1; done) & \
            echo $$ $! > ids; wait";
        let (mut worker, ids) = work(store, &flags, script);
        assert_eq!((worker.end().code, ids.len()), (Some(3), 2));
        wait_for_the_end_of(&ids);
    }

    /// A command gets SIGTERM before it is killed, so that it can clean up.
    fn a_stopped_command_has_a_second_to_clean_up(store) {
        store.push("job --max-attempts 1");
        let flags = ["--timeout", TIMEOUT, "--until-empty"];
        let (mut worker, _) = work(store, &flags, CLEANING);
        assert_eq!(worker.end().code, Some(3));
        assert!(store.file("cleaned").exists(), "the command got no SIGTERM");
    }

    /// A process that a command left running is not ended together with the command of
    /// a later job.
    fn a_process_that_a_job_left_outlives_the_commands_of_later_jobs(store) {
        store.push("leave wait --max-attempts 1");
        let script = "if [ $(cat) = leave ]; then \
            sleep 1000 </dev/null >/dev/null 2>&1 & echo $! > ids; \
            else sleep 1000; fi";
        let flags = ["--concurrency", "1", "--timeout", "10s", "--until-empty"];
        let (mut worker, left) = work(store, &flags, script);
        let ended = worker.end();
        assert_eq!(ended.code, Some(3), "{}", ended.err);
        assert_eq!(store.count("default", "finished"), 1, "{}", ended.err);
        assert!(is_alive(left[0]), "the process that the first job left was ended");
        let left = rustix::process::Pid::from_raw(left[0]).unwrap();
        rustix::process::kill_process(left, Signal::KILL).unwrap();
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
        let (mut worker, _) = work(store, &["--concurrency", "1"], UNTIL_GO);
        worker.signal(Signal::TERM);
        worker.wait_for_error("stopping");
        fs::write(store.file("go"), "").unwrap();
        let ended = worker.end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert_eq!(ended.out, b"job");
        assert_eq!(store.count("default", "finished"), 1);
        assert_eq!(store.count("default", "ready"), 1);
    }

    /// R24: when the time of --grace is over, the command is killed and its job goes back.
    fn a_command_has_the_time_of_grace_to_end(store) {
        store.push("job");
        let (mut worker, ids) = work(store, &["--grace", "300ms"], STUBBORN);
        worker.signal(Signal::TERM);
        worker.wait_for_error("running commands have 300ms to end");
        let stopped = Instant::now();
        let ended = worker.end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        let took = stopped.elapsed();
        assert!(took < Duration::from_secs(20), "it ran for {took:?} after the signal");
        wait_for_the_end_of(&ids);
        assert_eq!(store.count("default", "ready"), 1);
    }

    /// R24: every signal that asks a process to end stops the worker gracefully.
    fn every_signal_that_asks_to_end_lets_the_command_finish(store) {
        for signal in [
            Signal::HUP, Signal::INT, Signal::QUIT, Signal::TERM, Signal::ALARM,
            Signal::USR1, Signal::USR2, Signal::XCPU,
        ] {
            store.push("job");
            drop(fs::remove_file(store.file("ids")));
            drop(fs::remove_file(store.file("go")));
            let (mut worker, _) = work(store, &[], UNTIL_GO);
            worker.signal(signal);
            worker.wait_for_error("stopping");
            fs::write(store.file("go"), "").unwrap();
            let ended = worker.end();
            assert_eq!(ended.code, Some(0), "{signal:?}: {}", ended.err);
            assert_eq!(ended.out, b"job\n", "{signal:?}");
        }
        assert_eq!(store.count("default", "finished"), 8);
    }

    /// A second SIGHUP or SIGXCPU does not stop the worker hard: a closed terminal
    /// sends two hangups, and a processor time limit sends a signal each second.
    fn a_repeated_hangup_does_not_insist(store) {
        store.push("job");
        let (mut worker, _) = work(store, &[], UNTIL_GO);
        worker.signal(Signal::HUP);
        worker.wait_for_error("stopping");
        worker.signal(Signal::HUP);
        worker.signal(Signal::XCPU);
        worker.signal(Signal::TERM);
        fs::write(store.file("go"), "").unwrap();
        let ended = worker.end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert_eq!(ended.out, b"job\n");
    }

    /// A worker under `nohup` ignores SIGHUP, and so outlives its terminal.
    fn a_hangup_that_is_ignored_from_the_start_stays_ignored(store) {
        store.push("first");
        let worker = store.relq("work --exec cat").ignoring_hangups();
        let mut worker = worker.start();
        wait_until("the first is done", || store.count("default", "finished") == 1);
        worker.signal(Signal::HUP);
        store.push("second");
        wait_until("the second is done", || store.count("default", "finished") == 2);
        worker.signal(Signal::TERM);
        let ended = worker.end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        assert_eq!(ended.out, b"first\nsecond\n");
    }

    /// R24: a second signal kills the command, and the job goes back without counting
    /// the attempt.
    fn a_second_signal_kills_the_command_and_gives_the_job_back(store) {
        store.push("job");
        let (mut worker, ids) = work(store, &[], STUBBORN);
        worker.signal(Signal::INT);
        // Wait between the signals: two that are pending at once count as one.
        worker.wait_for_error("stopping");
        assert!(ids.iter().all(|id| is_alive(*id)));
        worker.signal(Signal::INT);
        let insisted = Instant::now();
        let ended = worker.end();
        assert_eq!(ended.code, Some(0), "{}", ended.err);
        // Without the second signal, the command would have 25 seconds.
        let took = insisted.elapsed();
        assert!(took < Duration::from_secs(20), "it ran for {took:?} after the second signal");
        wait_for_the_end_of(&ids);
        let job = &store.relq("peek --json").json()[0];
        assert_eq!(job["attempt"], 0, "{}", ended.err);
    }
}
