//! Tests that run the built program `relq-bench` as a user does.

#![expect(clippy::unwrap_used, reason = "a test that fails may panic")]

use std::{
    process::{Child, Command, Output, Stdio},
    thread,
    time::{Duration, Instant},
};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use tempfile::TempDir;

/// How long a test waits for a condition before it fails.
const LIMIT: Duration = Duration::from_secs(120);

/// Returns a command that runs `relq-bench` in a folder of the test.
fn bench(folder: &TempDir, arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_relq-bench"));
    command.args(arguments).current_dir(folder.path());
    for variable in ["RELQ_URL", "RELQ_PASSWORD_FILE", "RELQ_LOG"] {
        command.env_remove(variable);
    }
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    command
}

/// Runs `relq-bench` with arguments that it must refuse. Returns its standard error.
fn refusal(arguments: &[&str]) -> String {
    let folder = tempfile::tempdir().unwrap();
    let Output { status, stderr, .. } = bench(&folder, arguments).output().unwrap();
    let error = String::from_utf8(stderr).unwrap();
    assert_eq!(status.code(), Some(2), "{error}");
    error
}

/// The private Redis server ends when `relq-bench` ends.
#[cfg(target_os = "linux")]
#[test]
fn a_benchmark_that_is_stopped_leaves_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let line = ["--backend", "zset", "--jobs", "100000000"];
    let running = bench(&folder, &line).spawn().unwrap();
    let id = i32::try_from(running.id()).unwrap();
    let server = eventually("its server runs", || child_of(&running));
    kill_process(Pid::from_raw(id).unwrap(), Signal::TERM).unwrap();
    let ended = running.wait_with_output().unwrap();
    let error = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{error}");
    assert!(error.contains("stopped by a signal"), "{error}");
    eventually("the server has ended", || test_kill_process(server).err());
}

/// A benchmark that is killed cannot end its private server, so the guard ends it.
#[cfg(target_os = "linux")]
#[test]
fn a_benchmark_that_is_killed_leaves_no_server() {
    let folder = tempfile::tempdir().unwrap();
    let line = ["--backend", "zset", "--jobs", "100000000"];
    let mut running = bench(&folder, &line).spawn().unwrap();
    let server = eventually("its server runs", || child_of(&running));
    running.kill().unwrap();
    running.wait().unwrap();
    eventually("the server has ended", || has_ended(server).then_some(()));
}

/// The charts of this repository's page of measurements can be drawn again without a
/// new measurement.
#[test]
fn the_charts_of_a_page_are_drawn_again() {
    let folder = tempfile::tempdir().unwrap();
    let docs = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/measurements.md");
    std::fs::copy(docs, folder.path().join("measurements.md")).unwrap();
    std::fs::create_dir(folder.path().join("measurements")).unwrap();
    let drawn = bench(&folder, &["--redraw", "."]).output().unwrap();
    assert!(drawn.status.success(), "{}", String::from_utf8_lossy(&drawn.stderr));
    for name in ["throughput", "hand-over", "waiting", "leased"] {
        let file = format!("measurements/{name}.svg");
        let drawn = std::fs::read_to_string(folder.path().join(&file)).unwrap();
        let kept = std::fs::read_to_string(format!(
            "{}/../docs/{file}",
            env!("CARGO_MANIFEST_DIR")
        ));
        assert_eq!(drawn, kept.unwrap(), "relq-bench --redraw docs");
    }
}

#[test]
fn a_refused_url_shows_no_password() {
    let line = ["--backend", "zset", "--url", "unix:///run/r.sock?pass=s3cret"];
    let error = refusal(&line);
    assert!(!error.contains("s3cret"), "{error}");
}

/// Control characters in a refused command line are shown as escapes, because a script
/// may have put untrusted text there.
#[test]
fn a_refused_command_line_is_shown_with_escapes() {
    for line in [&["--backend", "\x1b[2J\u{202e}"][..], &["\x1b[2J\u{202e}"]] {
        let error = refusal(line);
        assert!(!error.contains(['\x1b', '\u{202e}']), "{error}");
        assert!(error.contains("\\u{202e}"), "{error}");
    }
}

/// Calls `ask` until it returns a value. Fails after [`LIMIT`].
fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < LIMIT, "it does not come true: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Whether a process has ended, even if its parent has not read its exit status yet.
#[cfg(target_os = "linux")]
fn has_ended(process: Pid) -> bool {
    let id = process.as_raw_nonzero();
    let status = std::fs::read_to_string(format!("/proc/{id}/status"));
    status.is_err() || status.is_ok_and(|status| status.contains("State:\tZ"))
}

/// The id of the server process that this process has started.
#[cfg(target_os = "linux")]
fn child_of(parent: &Child) -> Option<Pid> {
    let line = format!("PPid:\t{}\n", parent.id());
    let mut ids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        entry.unwrap().file_name().to_str().and_then(|name| name.parse().ok())
    });
    let id = ids.find(|id: &i32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status"));
        status.is_ok_and(|status| {
            status.contains(&line) && status.starts_with("Name:\tredis-server\n")
        })
    });
    id.and_then(Pid::from_raw)
}
