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
        net::{SocketAddr, TcpStream},
        path::PathBuf,
        thread,
        time::{Duration, Instant},
    };

    use super::*;
    use crate::{proxy::Address, server::Server};

    const LIMIT: Duration = Duration::from_secs(60);

    /// A test program that starts a server and waits. The test below starts this
    /// program and kills it.
    #[test]
    #[ignore = "a_killed_test_leaves_no_server starts it"]
    fn waits_with_a_server() {
        let server = Server::start_on_tcp();
        let config = server.command(&[b"CONFIG", b"GET", b"dir"]);
        let config = String::from_utf8(config).unwrap();
        let dir = config.lines().last().unwrap();
        let Address::Tcp(address) = server.address() else { panic!("{server:?}") };
        println!("\nserver {address} {dir}");
        thread::sleep(LIMIT);
    }

    #[test]
    fn a_killed_test_leaves_no_server() {
        let mut test = Command::new(env::current_exe().unwrap())
            .args(["server::guard::tests::waits_with_a_server", "--exact"])
            .args(["--ignored", "--nocapture", "--test-threads=1"])
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(test.stdout.take().unwrap()).lines();
        let words = lines.map(Result::unwrap).find_map(|line| {
            let words = line.strip_prefix("server ")?.split_once(' ')?;
            Some((words.0.to_owned(), words.1.to_owned()))
        });
        let (address, folder) = words.expect("it says where its server is");
        let (address, folder) =
            (address.parse::<SocketAddr>().unwrap(), PathBuf::from(folder));
        assert!(TcpStream::connect(address).is_ok() && folder.exists());

        test.kill().unwrap();
        test.wait().unwrap();

        let start = Instant::now();
        while TcpStream::connect(address).is_ok() || folder.exists() {
            assert!(start.elapsed() < LIMIT, "the server at {address} still runs");
            thread::sleep(Duration::from_millis(5));
        }
    }
}
