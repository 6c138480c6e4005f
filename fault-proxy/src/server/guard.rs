//! A server process that does not outlive the process that started it.
//!
//! ```text
//! test ──── starts ─────▶ server
//!   │                        ▲
//!   │ pipe                   │ SIGKILL
//!   └── starts ──▶ guard ────┘
//! ```
//!
//! A test that is killed with SIGKILL cannot end its server. The guard waits for the
//! end of a pipe that only the test holds open. The system closes the pipe, however the
//! test ends. Then the guard kills the server and removes its folder.
//!
//! The server waits for a word from the test before it starts, and the test sends it
//! after the guard has started. So there is no moment at which a killed test would
//! leave the server.

use std::{
    io::{self, Write},
    os::unix::process::CommandExt,
    path::Path,
    process::{Child, Command, ExitStatus, Stdio},
};

/// A shell script that waits for a line and then becomes the server. If no line comes,
/// it ends.
const SERVER: &str = r#"read -r go && exec "$@" </dev/null"#;

/// A shell script that waits for the end of its input and then kills the process `$1`,
/// which is the server, and removes the folder `$2`.
const GUARD: &str = r#"read -r end; kill -9 "$1"; rm -rf -- "$2""#;

/// The exit code of a shell when it does not find the program that it is to run.
const NOT_FOUND: i32 = 127;

/// A running server, and the process that kills it when this process ends.
#[derive(Debug)]
pub struct GuardedProcess {
    server: Child,
    guard: Child,
}

impl GuardedProcess {
    /// Starts the server and its guard. The guard removes the folder if this process is
    /// killed.
    ///
    /// # Errors
    /// When no process can be started.
    pub fn start(server: &Command, folder: &Path) -> io::Result<Self> {
        let mut server =
            shell(SERVER).arg(server.get_program()).args(server.get_args()).spawn()?;
        let guard = shell(GUARD)
            .arg(server.id().to_string())
            .arg(folder)
            .stderr(Stdio::null())
            // The guard gets a process group of its own, because Ctrl-C ends every
            // process of the test's group.
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
    ///
    /// # Errors
    /// When a process cannot be killed.
    pub fn kill(&mut self) -> io::Result<()> {
        // The guard is killed first, because it would remove the folder. The server's
        // exit is collected last, so that no other process can have its id while the
        // guard runs.
        self.guard.kill()?;
        self.guard.wait()?;
        self.server.kill()?;
        self.server.wait().map(drop)
    }

    /// Returns the process id of the server.
    pub fn id(&self) -> u32 {
        self.server.id()
    }

    /// Returns the exit status of the server, or `None` while the server runs.
    ///
    /// # Errors
    /// When the system does not say.
    pub fn try_wait(&mut self) -> io::Result<Option<ExitStatus>> {
        self.server.try_wait()
    }
}

/// Returns whether the server ended because its program is not installed.
pub fn is_not_found(status: ExitStatus) -> bool {
    status.code() == Some(NOT_FOUND)
}

fn shell(script: &str) -> Command {
    let mut shell = Command::new("/bin/sh");
    shell.args(["-c", script, "relq-server"]);
    shell.stdin(Stdio::piped()).stdout(Stdio::null());
    shell
}

#[cfg(test)]
mod tests {
    use std::{
        env,
        io::{BufRead, BufReader},
        path::PathBuf,
        thread,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::server::Server;

    const LIMIT: Duration = Duration::from_secs(60);

    /// Prints the process and the folder of a server for the test that runs this program.
    fn print(server: &Server) {
        let last_word = |command: &[&[u8]], mark| {
            let text = String::from_utf8(server.command(command)).unwrap();
            text.lines().find_map(|line| line.strip_prefix(mark)).unwrap().to_owned()
        };
        let process = last_word(&[b"INFO", b"server"], "process_id:");
        let folder = last_word(&[b"CONFIG", b"GET", b"dir"], "/");
        println!("\nserver {process} /{folder}");
    }

    #[test]
    #[ignore = "a_killed_test_leaves_no_server starts it"]
    fn waits_with_a_server() {
        let server = Server::start_on_tcp();
        print(&server);
        thread::sleep(LIMIT);
    }

    #[test]
    #[ignore = "a_server_for_the_next_test_ends_with_the_program starts it"]
    fn ends_with_a_server_for_the_next_test() {
        print(&Server::start());
    }

    /// Starts a test of this program in a process of its own. Returns the process, and the
    /// process and the folder of its server.
    fn start(test: &str) -> (Child, String, PathBuf) {
        let mut test = Command::new(env::current_exe().unwrap())
            .args([&format!("server::guard::tests::{test}"), "--exact"])
            .args(["--ignored", "--nocapture", "--test-threads=1"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(test.stdout.as_mut().unwrap()).lines();
        let words = lines.map(Result::unwrap).find_map(|line| {
            let words = line.strip_prefix("server ")?.split_once(' ')?;
            Some((words.0.to_owned(), PathBuf::from(words.1)))
        });
        let (server, folder) = words.expect("it says where its server is");
        (test, server, folder)
    }

    fn runs(process: &str) -> bool {
        let mut kill = Command::new("kill");
        kill.args(["-0", process]).stderr(Stdio::null()).status().unwrap().success()
    }

    /// Waits until the server has ended and its folder is gone.
    fn assert_ends(server: &str, folder: &Path) {
        let start = Instant::now();
        while runs(server) || folder.exists() {
            assert!(start.elapsed() < LIMIT, "the server {server} still runs");
            thread::sleep(Duration::from_millis(5));
        }
    }

    #[test]
    fn a_killed_test_leaves_no_server() {
        let (mut test, server, folder) = start("waits_with_a_server");
        assert!(runs(&server) && folder.exists());

        test.kill().unwrap();
        test.wait().unwrap();

        assert_ends(&server, &folder);
    }

    #[test]
    fn a_server_for_the_next_test_ends_with_the_program() {
        let (mut test, server, folder) = start("ends_with_a_server_for_the_next_test");

        assert!(test.wait().unwrap().success());

        assert_ends(&server, &folder);
    }
}
