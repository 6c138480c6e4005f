//! Runs a server process that does not outlive the benchmark. The conformance suite has
//! the same guard in `conformance-tests/src/server/guard.rs`; the benchmark does not
//! depend on the suite.
//!
//! ```text
//! relq-bench ─ starts ───▶ server
//!   │                        ▲
//!   │ pipe                   │ SIGKILL
//!   └── starts ──▶ guard ────┘
//! ```
//!
//! A benchmark that is killed with SIGKILL cannot end its server. So the guard, a shell
//! process, waits for the end of a pipe that only the benchmark holds open. The
//! operating system closes the pipe, however the benchmark ends. Then the guard kills
//! the server and removes its folder.
//!
//! The server waits for a line from the benchmark before it starts, and the benchmark
//! sends the line after the guard has started. So there is no moment at which a killed
//! benchmark would leave the server running.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

/// The shell script that waits for a line and then becomes the server. It ends if the
/// pipe is closed without a line.
const SERVER: &str = r#"read -r go && exec "$@" </dev/null"#;

/// The shell script of the guard. `$1` is the server's process id, `$2` its folder.
const GUARD: &str = r#"read -r end; kill -9 "$1"; rm -rf -- "$2""#;

/// The exit code of a shell that does not find the program.
const NOT_FOUND: i32 = 127;

/// A running server and its guard.
#[derive(Debug)]
pub(crate) struct GuardedProcess {
    server: Child,
    guard: Child,
}

impl GuardedProcess {
    /// Starts the server, with a guard that kills it and removes the folder if this
    /// process is killed.
    pub(crate) fn start(server: &Command, folder: &Path) -> io::Result<Self> {
        let mut server =
            shell(SERVER).arg(server.get_program()).args(server.get_args()).spawn()?;
        let guard = shell(GUARD)
            .arg(server.id().to_string())
            .arg(folder)
            .stderr(Stdio::null())
            // The guard has a process group of its own, because Ctrl-C ends all
            // processes of the benchmark's group.
            .process_group(0)
            .spawn();
        let guard = match guard {
            Ok(guard) => guard,
            Err(error) => {
                server.kill()?;
                server.wait()?;
                return Err(error);
            }
        };
        if let Some(mut go) = server.stdin.take() {
            go.write_all(b"go\n")?;
        }
        Ok(Self { server, guard })
    }

    /// Kills the server with SIGKILL.
    pub(crate) fn kill(&mut self) -> io::Result<()> {
        // Kill the guard first, because it would remove the folder. Call `wait` on the
        // server last: until then, no other process can get its id, so the guard cannot
        // kill a wrong process.
        self.guard.kill()?;
        self.guard.wait()?;
        self.server.kill()?;
        self.server.wait().map(drop)
    }

    /// The exit status of the server. `None` while it runs.
    pub(crate) fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.server.try_wait()
    }
}

/// Whether a server ended because its program does not exist.
pub(crate) fn is_not_found(status: ExitStatus) -> bool {
    status.code() == Some(NOT_FOUND)
}

fn shell(script: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, "relq-server"]);
    shell.stdin(Stdio::piped()).stdout(Stdio::null());
    shell
}
