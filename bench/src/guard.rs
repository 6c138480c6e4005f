//! A server process that does not outlive the benchmark. The suite has the same guard in
//! `conformance-tests/src/server/guard.rs`; the benchmark does not depend on the suite.
//!
//! ```text
//! relq-bench ─ starts ───▶ server
//!   │                        ▲
//!   │ pipe                   │ SIGKILL
//!   └── starts ──▶ guard ────┘
//! ```
//!
//! A benchmark that is killed with SIGKILL cannot end its server. The guard waits for the
//! end of a pipe that only the test holds open. The system closes the pipe, however the
//! test ends. Then the guard kills the server and removes its folder.
//!
//! The server waits for a word from the benchmark before it starts, and the benchmark
//! sends it after the guard has started. So there is no moment at which a killed
//! benchmark would leave the server.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

/// Waits for a line, then becomes the server. Without the line it ends.
const SERVER: &str = r#"read -r go && exec "$@" </dev/null"#;

/// `$1` is the server, `$2` its folder.
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
    /// Starts the server. The folder is removed if this process is killed.
    pub(crate) fn start(server: &Command, folder: &Path) -> io::Result<Self> {
        let mut server =
            shell(SERVER).arg(server.get_program()).args(server.get_args()).spawn()?;
        let guard = shell(GUARD)
            .arg(server.id().to_string())
            .arg(folder)
            .stderr(Stdio::null())
            // Ctrl-C ends the group of the benchmark, and the guard must live longer.
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
        // The guard ends first, because it would remove the folder. The server is
        // waited for last, so that the guard never sees its id on another process.
        self.guard.kill()?;
        self.guard.wait()?;
        self.server.kill()?;
        self.server.wait().map(drop)
    }

    /// How the server ended, if it has ended.
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
