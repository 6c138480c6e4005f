//! A local `redis-server` on a socket of its own.

use std::{
    path::PathBuf,
    process::Command,
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{
    START_LIMIT,
    guard::{GuardedProcess, is_not_found},
    own_options, talk,
};
use crate::proxy::Address;

/// A process that ends when this is dropped, or when this process is killed.
#[derive(Debug)]
pub(super) struct Process {
    dir: TempDir,
    port: Option<u16>,
    options: Vec<String>,
    guarded: Option<GuardedProcess>,
}

impl Process {
    pub(super) fn start(options: &[&str], port: Option<u16>) -> Self {
        let dir = tempfile::Builder::new().prefix("relq-").tempdir();
        let options = options.iter().map(ToString::to_string).collect();
        let mut process =
            Self { dir: dir.expect("a temp dir"), port, options, guarded: None };
        process.spawn();
        process
    }

    pub(super) fn address(&self) -> Address {
        match self.port {
            Some(port) => Address::Tcp(([127, 0, 0, 1], port).into()),
            None => Address::Unix(self.socket()),
        }
    }

    pub(super) fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }

    pub(super) fn kill(&mut self) {
        let mut guarded = self.guarded.take().expect("the server runs");
        guarded.kill().expect("the server can be killed");
    }

    pub(super) fn restart(&mut self) {
        if self.guarded.is_some() {
            self.kill();
        }
        self.spawn();
    }

    fn spawn(&mut self) {
        let mut server = Command::new("redis-server");
        server
            .args(["--port", &self.port.unwrap_or(0).to_string()])
            .args(["--bind", "127.0.0.1"])
            .arg("--unixsocket")
            .arg(self.socket())
            .arg("--dir")
            .arg(self.dir.path())
            .args(own_options())
            .args(&self.options);
        let guarded = GuardedProcess::start(&server, self.dir.path());
        self.guarded = Some(guarded.expect("a shell starts"));
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        let (start, address) = (Instant::now(), self.address());
        while !talk::is_ready(&address) {
            let guarded = self.guarded.as_mut().expect("the server was started");
            if let Some(status) = guarded.try_wait().expect("the server can be asked") {
                assert!(!is_not_found(status), "install redis-server 7.0 or later");
                panic!("redis-server ended at once: {status}");
            }
            assert!(start.elapsed() < START_LIMIT, "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(guarded) = &mut self.guarded {
            // The process may have ended by itself, and a drop cannot report an error.
            drop(guarded.kill());
        }
    }
}
