//! A Redis server that works together with others, as a node of a cluster, a replica or
//! a sentinel.

use std::{
    fs, io,
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    PROGRAM, START_LIMIT, free_port,
    guard::{GuardedProcess, is_not_found},
    program,
    rewrite_aof::rewrite_aof,
    talk,
};
use crate::proxy::Address;

/// A `redis-server` process on a port of 127.0.0.1, with a configuration of its own. It
/// ends when this is dropped, or when this program is killed.
#[derive(Debug)]
pub struct Node {
    dir: TempDir,
    port: u16,
    arguments: Vec<String>,
    guarded: Option<GuardedProcess>,
}

impl Node {
    /// Starts a server with these lines of configuration, and with these arguments
    /// behind the name of the configuration file. Returns when it answers.
    ///
    /// # Panics
    /// When no server can be started: a test that needs one fails, and does not pass by
    /// skipping.
    pub fn start(lines: &str, arguments: &[&str]) -> Self {
        let dir = tempfile::Builder::new().prefix("relq-").tempdir();
        let (dir, port) = (dir.expect("a temp dir"), free_port());
        let arguments = arguments.iter().map(ToString::to_string).collect();
        let mut node = Self { dir, port, arguments, guarded: None };
        let folder = node.dir.path().display();
        let configuration =
            format!("port {port}\nbind 127.0.0.1\ndir {folder}\nsave \"\"\n{lines}");
        fs::write(node.file(), configuration).expect("the configuration is written");
        node.spawn();
        node
    }

    /// Starts an empty node of a cluster, which has no slots. The other nodes take it for
    /// dead when it has not answered for five seconds.
    ///
    /// # Panics
    /// When [`start`](Self::start) panics.
    pub fn in_a_cluster() -> Self {
        let bus = free_port();
        Self::start(
            &format!(
                "cluster-enabled yes\ncluster-port {bus}\ncluster-node-timeout 5000\n"
            ),
            &[],
        )
    }

    /// Returns the port on which the server listens.
    pub fn port(&self) -> u16 {
        self.port
    }

    /// Returns the server's address as `HOST:PORT`, the form that a URL uses.
    pub fn address(&self) -> String {
        format!("127.0.0.1:{}", self.port)
    }

    /// Kills the server with SIGKILL.
    ///
    /// # Panics
    /// When the server was killed before.
    pub fn kill(&mut self) {
        let mut guarded = self.guarded.take().expect("the server runs");
        guarded.kill().expect("the server can be killed");
    }

    /// Stops the server's process with SIGSTOP: it keeps its connections and answers
    /// nothing until [`thaw`](Self::thaw).
    ///
    /// # Panics
    /// When the server does not run.
    pub fn freeze(&self) {
        self.signal("-STOP");
    }

    /// Lets a frozen server go on.
    ///
    /// # Panics
    /// When the server does not run.
    pub fn thaw(&self) {
        self.signal("-CONT");
    }

    fn signal(&self, signal: &str) {
        let server = self.guarded.as_ref().expect("the server runs").id().to_string();
        let sent = Command::new("kill").args([signal, &server]).status();
        assert!(sent.expect("kill runs").success(), "{self:?} gets {signal}");
    }

    /// Starts the server again, on the same port and in the same folder. If it has an
    /// append-only file, it has written that file anew when this returns, because the
    /// kill may have torn a transaction.
    ///
    /// # Panics
    /// When the server runs, or cannot be started.
    pub fn restart(&mut self) {
        self.spawn();
        rewrite_aof(&self.socket_address());
    }

    fn spawn(&mut self) {
        assert!(self.guarded.is_none(), "{self:?} runs");
        let mut server = Command::new(program());
        server.arg(self.file()).args(&self.arguments);
        let guarded = GuardedProcess::start(&server, self.dir.path());
        self.guarded = Some(guarded.expect("a shell starts"));
        self.wait_until_ready();
    }

    /// Sends one command of plain words and returns the raw reply, errors included.
    ///
    /// # Panics
    /// When the server does not answer.
    pub fn ask(&self, words: &[&str]) -> String {
        let answer = self.try_ask(words);
        answer.unwrap_or_else(|error| panic!("{self:?} does not answer: {error}"))
    }

    /// Sends one command of plain words and returns the raw reply, errors included.
    ///
    /// # Errors
    /// When the server does not answer.
    pub fn try_ask(&self, words: &[&str]) -> io::Result<String> {
        let args: Vec<_> = words.iter().map(|word| word.as_bytes()).collect();
        let answer = talk::ask(&self.socket_address(), &args)?;
        Ok(String::from_utf8_lossy(&answer).into_owned())
    }

    fn file(&self) -> PathBuf {
        self.dir.path().join("redis.conf")
    }

    fn socket_address(&self) -> Address {
        Address::Tcp(([127, 0, 0, 1], self.port).into())
    }

    fn wait_until_ready(&mut self) {
        let (start, address) = (Instant::now(), self.socket_address());
        while !talk::is_ready(&address) {
            let guarded = self.guarded.as_mut().expect("the server was started");
            if let Some(status) = guarded.try_wait().expect("the server can be asked") {
                assert!(
                    !is_not_found(status),
                    "install redis-server 7.0 or later, or name a program in {PROGRAM}"
                );
                panic!("redis-server ended at once: {status}");
            }
            assert!(start.elapsed() < START_LIMIT, "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Node {
    fn drop(&mut self) {
        if let Some(guarded) = &mut self.guarded {
            // An error is ignored: the process may have ended, and a drop reports
            // nothing.
            drop(guarded.kill());
        }
    }
}
