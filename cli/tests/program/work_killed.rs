//! `relq work` when the worker or its server is killed with SIGKILL.

use std::{
    collections::BTreeSet,
    fs,
    io::{Read, Write},
    net::Shutdown,
    os::{fd::OwnedFd, unix::net::UnixStream},
    process::Command,
    thread,
    time::Duration,
};

use crate::{
    on_each_store,
    relq::{Running, Store, is_alive, wait_until},
    work_stopped::{CLEANING, STUBBORN, wait_for_the_end_of, work},
};

on_each_store! {
    /// R1, R9: no job is lost, at whatever moment the worker is killed.
    fn a_worker_killed_at_any_time_loses_nothing(store) {
        let lines: String = (0..300).map(|n| format!("{n}\n")).collect();
        store.relq("push --quiet --file -").input(lines).ok();
        let script = "echo $(cat) >> done";
        let line = ["work", "--lease", "1s", "--exec", "sh", "-c", script];
        for round in 0..8_u64 {
            let mut worker = store.relq_with(&line).start();
            // The delay grows with each round: the first kill comes before the first
            // claim, the last one in the middle of the work.
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

    /// When a worker is killed, its command and all processes of the command end.
    /// Otherwise the job would run twice at once after its lease expires.
    fn a_killed_worker_ends_its_command_with_all_it_started(store) {
        store.push("job");
        let (mut worker, ids) = work(store, &[], STUBBORN);
        assert_eq!(ids.len(), 2);
        worker.kill();
        wait_for_the_end_of(&ids);
    }

    fn a_killed_worker_lets_its_command_clean_up(store) {
        store.push("job");
        let (mut worker, ids) = work(store, &[], CLEANING);
        worker.kill();
        wait_for_the_end_of(&ids);
        assert!(store.file("cleaned").exists(), "the command got no SIGTERM");
    }

    fn a_killed_worker_ends_a_command_that_ignores_sigterm(store) {
        store.push("job");
        let script = "trap '' TERM HUP; echo $$ > ids; while :; do sleep 0.1; done";
        let (mut worker, ids) = work(store, &[], script);
        worker.kill();
        wait_for_the_end_of(&ids);
    }

    /// No command outlives its worker, whether the worker is killed before, while or
    /// after it starts the command.
    fn a_worker_killed_at_any_time_leaves_no_command(store) {
        let lines: String = (0..500).map(|n| format!("{n}\n")).collect();
        store.relq("push --quiet --file -").input(lines).ok();
        let script = "echo >> started; exec sleep 1000";
        let line = ["work", "--concurrency", "8", "--exec", "sh", "-c", script];
        let started = || {
            let lines = fs::read_to_string(store.file("started")).unwrap_or_default();
            lines.lines().count()
        };
        let mut killed = Vec::new();
        for round in 0..16 {
            let mut worker = store.relq_with(&line).start();
            thread::sleep(Duration::from_millis(round * 5));
            worker.kill();
            killed.push(worker);
        }
        let before = started();
        // Let the last worker start some commands before it is killed.
        let mut worker = store.relq_with(&line).start();
        wait_until("the commands run", || started() >= before + 8);
        worker.kill();
        killed.push(worker);
        // No output is open when all commands have ended: a running command would hold
        // the output of its worker open.
        killed.iter().for_each(Running::wait_for_closed_output);
    }

    /// A process that a finished job left running is not ended when the worker is
    /// killed.
    fn a_killed_worker_leaves_alone_what_finished_jobs_left(store) {
        store.push("job");
        let script = "sleep 1000 </dev/null >/dev/null 2>&1 & echo $! > left";
        let mut worker = store.relq_with(&["work", "--exec", "sh", "-c", script]).start();
        wait_until("it is done", || store.count("default", "finished") == 1);
        store.relq_with(&["push", "-q", "other", "job"]).ok();
        worker.kill();
        // A guard needs some time to end processes. So kill a second worker, and wait
        // until its commands have ended: by then the process that the first worker left
        // would have ended too.
        let (mut other, ids) = work(store, &["-q", "other"], STUBBORN);
        other.kill();
        wait_for_the_end_of(&ids);
        let left = fs::read_to_string(store.file("left")).unwrap();
        let left = left.trim().parse().unwrap();
        assert!(is_alive(left));
        let left = rustix::process::Pid::from_raw(left).unwrap();
        rustix::process::kill_process(left, rustix::process::Signal::KILL).unwrap();
    }

    /// A command that kills its own process group fails, and the worker continues.
    fn a_command_that_kills_its_own_group_fails_alone(store) {
        store.push("a b c --max-attempts 1");
        let line = ["work", "--concurrency", "1", "--until-empty", "--exec", "sh", "-c",
            "test $(cat) = b || kill -9 0"];
        let ended = store.relq_with(&line).run();
        assert_eq!(ended.code, Some(3), "{}", ended.err);
        assert_eq!(store.count("default", "finished"), 1, "{}", ended.err);
        let dead = store.relq("dead list --json").json();
        for job in dead.as_array().unwrap() {
            let error = job["last_error"].as_str().unwrap();
            assert!(error.starts_with("signal: 9 (SIGKILL)"), "{error}");
        }
        assert_eq!(dead.as_array().unwrap().len(), 2);
    }

    /// R11: a job whose command kills its worker each time is buried, with the reason.
    fn a_job_that_kills_its_worker_is_buried_with_the_reason(store) {
        store.push("poison --max-attempts 3");
        let line = ["work", "--lease", "3s", "--exec", "sh", "-c", "kill -9 $PPID"];
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

/// If its worker has died, the guard checks its group once more and ends without a
/// message. This also holds in a container where the kernel reports the process group
/// of the guard's new parent as 0.
#[test]
fn a_guard_whose_worker_has_died_ends_in_silence() {
    let (ours, theirs) = UnixStream::pair().unwrap();
    let output = tempfile::NamedTempFile::new().unwrap();
    // A shell takes the worker's place: it starts the guard and ends at once.
    let mut worker = Command::new("sh")
        .args([
            "-c",
            "exec 3<&0; \"$0\" lead-group <&3 3<&- &",
            env!("CARGO_BIN_EXE_relq"),
        ])
        .stdin(OwnedFd::from(theirs))
        .stdout(output.reopen().unwrap())
        .stderr(output.reopen().unwrap())
        .spawn()
        .unwrap();
    assert!(worker.wait().unwrap().success());
    ours.set_read_timeout(Some(Duration::from_secs(20))).unwrap();
    let mut ready = [0];
    (&ours).read_exact(&mut ready).unwrap();

    (&ours).write_all(b"ad").unwrap();
    ours.shutdown(Shutdown::Write).unwrap();
    let mut rest = Vec::new();
    (&ours).read_to_end(&mut rest).expect("the guard has ended");
    assert!(rest.is_empty() || rest == ready, "{rest:?}");
    assert_eq!(fs::read_to_string(output.path()).unwrap(), "");
}

/// R1, R21: the worker continues by itself when its server is back.
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
