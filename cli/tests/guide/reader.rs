//! Runs the commands of a page in one shell, as a reader types them.

use std::{
    fmt::Write as _,
    fs,
    os::unix::{fs::symlink, process::CommandExt},
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
    thread,
    time::{Duration, Instant},
};

use relq_conformance::server::{Node, Server};
use rustix::process::{Pid, Signal, kill_process_group};

use crate::{
    blocks, pages,
    table::{Page, Prints, Row, Run, Servers},
};

/// The time that a page may take.
const LIMIT: Duration = Duration::from_secs(120);

/// How the script of each page begins.
const BEGIN: &str = r#"
set -o pipefail
trap 'kill $(jobs -p) 2>/dev/null; wait' EXIT

# Waits until the condition is true, stops the command gently, and takes its exit code.
stop_when() { # CONDITION PID
  until eval "$1" >/dev/null 2>&1; do
    kill -0 "$2" || break
    sleep 0.05
  done
  kill -TERM "$2"
  wait "$2"
}
"#;

/// Runs the page in a fresh folder, and compares what its commands print.
pub(crate) fn follow(page: &Page) {
    let folder = tempfile::tempdir().unwrap();
    let ended = run(&script(page), folder.path(), page.servers);
    for (number, row) in page.rows.iter().enumerate() {
        if let Row::Run(run) = row {
            compare(folder.path(), number, run);
        }
    }
    assert!(ended.success(), "{}: the shell ended with {ended}", page.path);
}

/// The script of the page. Each command writes to files that have its number.
fn script(page: &Page) -> String {
    let commands = blocks::commands_of_page(&pages::text_of(page.path));
    let commands: Vec<_> =
        commands.into_iter().filter(|it| !crate::is_left_out(it)).collect();
    assert_eq!(commands.len(), page.rows.len(), "{}: see the other tests", page.path);
    let mut script = BEGIN.to_owned();
    for (number, (command, row)) in commands.iter().zip(page.rows).enumerate() {
        if let Row::Run(run) = row {
            let command = started(&replaced(command, run), number, run);
            writeln!(
                script,
                "{}\nexec >out.{number} 2>err.{number}\n{command}\necho $? >code.{number}",
                run.before
            )
            .unwrap();
        }
    }
    script
}

/// The command with the words of this machine in place of those of the page.
fn replaced(command: &str, run: &Run) -> String {
    let mut command = command.to_owned();
    for (text, instead) in run.with {
        assert!(command.contains(text), "there is no `{text}` in `{command}`");
        command = command.replace(text, instead);
    }
    command
}

fn started(command: &str, number: usize, run: &Run) -> String {
    if let Some(command) = command.strip_suffix('&') {
        // Its output meanwhile is not that of the next command.
        format!("{command} >background.{number} 2>&1 &")
    } else if run.until.is_empty() {
        command.to_owned()
    } else {
        let condition = run
            .until
            .replace("OUTPUT", &format!("out.{number}"))
            .replace("ERRORS", &format!("err.{number}"));
        format!("{command} &\nstop_when '{condition}' $!")
    }
}

fn run(script: &str, folder: &Path, servers: Servers) -> ExitStatus {
    fs::create_dir(folder.join("bin")).unwrap();
    symlink(env!("CARGO_BIN_EXE_relq"), folder.join("bin/relq")).unwrap();
    let path = std::env::var("PATH").unwrap();
    let mut shell = Command::new("bash");
    shell
        .args(["-c", script])
        .current_dir(folder)
        .process_group(0)
        .stdin(Stdio::null());
    shell.env("PATH", format!("{}:{path}", folder.join("bin").display()));
    shell.env("HOME", folder);
    for name in ["RELQ_URL", "RELQ_QUEUE", "RELQ_LOG", "RELQ_PASSWORD_FILE"] {
        shell.env_remove(name);
    }
    match servers {
        Servers::None => end(shell.spawn().unwrap()),
        Servers::Redis => {
            let server = Server::start_on_tcp();
            shell.env("REDIS", server.url().trim_end_matches("/0"));
            end(shell.spawn().unwrap())
        }
        Servers::Cluster => {
            let node = Node::in_a_cluster();
            node.ask(&["CLUSTER", "ADDSLOTSRANGE", "0", "16383"]);
            shell.env("CLUSTER", node.address());
            wait_until(|| node.ask(&["CLUSTER", "INFO"]).contains("cluster_state:ok"));
            end(shell.spawn().unwrap())
        }
    }
}

/// Waits for the end of the shell, and kills all that it started if that takes too long.
pub(crate) fn end(mut shell: Child) -> ExitStatus {
    let began = Instant::now();
    loop {
        if let Some(status) = shell.try_wait().unwrap() {
            return status;
        }
        if began.elapsed() > LIMIT {
            let group = Pid::from_raw(shell.id().try_into().unwrap()).unwrap();
            kill_process_group(group, Signal::KILL).unwrap();
            return shell.wait().unwrap();
        }
        thread::sleep(Duration::from_millis(10));
    }
}

fn wait_until(mut is_true: impl FnMut() -> bool) {
    let began = Instant::now();
    while !is_true() {
        assert!(began.elapsed() < LIMIT, "the cluster does not form");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Compares the exit code and the output of a command with those of its row.
fn compare(folder: &Path, number: usize, run: &Run) {
    let read = |name| {
        let bytes = fs::read(folder.join(format!("{name}.{number}"))).ok()?;
        Some(String::from_utf8_lossy(&bytes).into_owned())
    };
    let (out, errors) =
        (read("out").unwrap_or_default(), read("err").unwrap_or_default());
    let Some(code) = read("code") else {
        panic!("`{}` did not end: {out}{errors}", run.begins);
    };
    let said = format!("`{}` printed: {out}{errors}", run.begins);
    assert_eq!(code.trim(), run.exits.to_string(), "the exit code: {said}");
    assert!(!errors.contains("panicked"), "{said}");
    match run.prints {
        Prints::Exactly(text) => assert_eq!(out, text, "{said}"),
        Prints::InAnyOrder(text) => assert_eq!(sorted(&out), sorted(text), "{said}"),
        Prints::Having(parts) => {
            for part in parts {
                assert!(out.contains(part), "there is no `{part}`: {said}");
            }
        }
    }
}

fn sorted(text: &str) -> Vec<&str> {
    let mut lines: Vec<_> = text.lines().collect();
    lines.sort_unstable();
    lines
}
