//! A `redis-server` process of this machine, on a unix socket of its own.

use std::{
    fs, io,
    path::PathBuf,
    process::{Command, ExitStatus},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    PROGRAM, START_LIMIT, free_port,
    guard::{GuardedProcess, is_not_found},
    own_options, program,
    rewrite_aof::rewrite_aof,
    talk,
};
use crate::proxy::Address;

/// How many times the node of a cluster is started before the test fails.
const START_ATTEMPTS: u32 = 5;

/// A `redis-server` process that ends when this is dropped, or when this program is
/// killed.
#[derive(Debug)]
pub(super) struct Process {
    dir: TempDir,
    port: Option<u16>,
    options: Vec<String>,
    is_in_cluster: bool,
    /// How many times the socket has moved.
    moves: u32,
    /// Whether the process has ended, or runs for the second time.
    was_killed: bool,
    guarded: Option<GuardedProcess>,
}

impl Process {
    pub(super) fn start(options: &[&str], port: Option<u16>) -> Self {
        Self::start_as(options, port, false)
    }

    /// Starts a server that is the only node of a cluster, and has all slots.
    pub(super) fn start_in_cluster(options: &[&str], port: Option<u16>) -> Self {
        let process = Self::start_as(options, port, true);
        let added =
            process.try_ask("CLUSTER ADDSLOTSRANGE 0 16383").expect("it answers");
        assert_eq!(added, "+OK\r\n", "the node takes all slots");
        process.wait_until_serving();
        process
    }

    fn start_as(options: &[&str], port: Option<u16>, is_in_cluster: bool) -> Self {
        let dir = tempfile::Builder::new().prefix("relq-").tempdir();
        let options = options.iter().map(ToString::to_string).collect();
        let dir = dir.expect("a temp dir");
        let mut process = Self {
            dir,
            port,
            options,
            is_in_cluster,
            moves: 0,
            was_killed: false,
            guarded: None,
        };
        process.spawn();
        process
    }

    /// Sends a command whose words are separated by blanks. Returns the raw reply.
    pub(super) fn try_ask(&self, command: &str) -> io::Result<String> {
        let args: Vec<_> = command.split(' ').map(str::as_bytes).collect();
        let reply = talk::ask(&self.address(), &args)?;
        Ok(String::from_utf8_lossy(&reply).into_owned())
    }

    /// Waits until the node of a cluster serves its slots.
    fn wait_until_serving(&self) {
        let start = Instant::now();
        let is_serving = |info: String| info.contains("cluster_state:ok");
        while !self.try_ask("CLUSTER INFO").is_ok_and(is_serving) {
            assert!(start.elapsed() < START_LIMIT, "the cluster does not form");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    pub(super) fn address(&self) -> Address {
        match self.port {
            Some(port) => Address::Tcp(([127, 0, 0, 1], port).into()),
            None => Address::Unix(self.socket()),
        }
    }

    /// The port on which the server listens besides its socket, or 0. A node of a
    /// cluster needs one even if all its clients use the socket.
    fn tcp_port(&self) -> u16 {
        match self.port {
            Some(port) => port,
            None if self.is_in_cluster => free_port(),
            None => 0,
        }
    }

    #[cfg(test)]
    pub(super) fn folder(&self) -> &std::path::Path {
        self.dir.path()
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.dir.path().join(format!("redis-{}.sock", self.moves))
    }

    /// Whether it has no options of its own, and runs since its start.
    pub(super) fn is_plain(&self) -> bool {
        let is_special = self.is_in_cluster || self.port.is_some() || self.was_killed;
        self.options.is_empty() && !is_special
    }

    /// Gives the socket another path. Clients that connect to the earlier one fail.
    pub(super) fn move_socket(&mut self) -> io::Result<()> {
        let earlier = self.socket();
        self.moves += 1;
        fs::rename(earlier, self.socket())
    }

    pub(super) fn kill(&mut self) {
        self.was_killed = true;
        let mut guarded = self.guarded.take().expect("the server runs");
        guarded.kill().expect("the server can be killed");
    }

    pub(super) fn restart(&mut self) {
        if self.guarded.is_some() {
            self.kill();
        }
        self.spawn();
        if self.is_in_cluster {
            self.wait_until_serving();
        }
        rewrite_aof(&self.address());
    }

    /// Starts the process. The port of a cluster's node was free when it was chosen. If
    /// another process has taken it since, other ports are tried.
    fn spawn(&mut self) {
        let attempts = if self.is_in_cluster { START_ATTEMPTS } else { 1 };
        for _ in 0..attempts {
            let guarded = GuardedProcess::start(&self.command(), self.dir.path());
            self.guarded = Some(guarded.expect("a shell starts"));
            match self.wait_until_ready() {
                None => return,
                Some(status) => assert!(
                    !is_not_found(status),
                    "install redis-server 7.0 or later, or name a program in {PROGRAM}"
                ),
            }
        }
        panic!("redis-server ended at once, {attempts} times");
    }

    fn command(&self) -> Command {
        let mut server = Command::new(program());
        server
            .args(["--port", &self.tcp_port().to_string()])
            .args(["--bind", "127.0.0.1"])
            .arg("--unixsocket")
            .arg(self.socket())
            .arg("--dir")
            .arg(self.dir.path())
            .args(own_options())
            .args(&self.options);
        if self.is_in_cluster {
            server.args(["--cluster-enabled", "yes"]);
            server.args(["--cluster-port", &free_port().to_string()]);
        }
        server
    }

    /// Waits until the server answers. Returns its exit status if it has ended.
    fn wait_until_ready(&mut self) -> Option<ExitStatus> {
        let (start, address) = (Instant::now(), self.address());
        while !talk::is_ready(&address) {
            let guarded = self.guarded.as_mut().expect("the server was started");
            let ended = guarded.try_wait().expect("the server can be asked");
            if ended.is_some() {
                return ended;
            }
            assert!(start.elapsed() < START_LIMIT, "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(1));
        }
        None
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(guarded) = &mut self.guarded {
            // An error is ignored: the process may have ended, and a drop reports
            // nothing.
            drop(guarded.kill());
        }
    }
}
