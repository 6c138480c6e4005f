//! A local `redis-server` on a socket of its own.

use std::{
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

use super::{START_LIMIT, own_options, talk};
use crate::proxy::Address;

/// A process that ends when this is dropped.
#[derive(Debug)]
pub(super) struct Process {
    dir: TempDir,
    port: Option<u16>,
    options: Vec<String>,
    child: Option<Child>,
}

impl Process {
    pub(super) fn start(options: &[&str], port: Option<u16>) -> Self {
        let dir = tempfile::Builder::new().prefix("relq-").tempdir();
        let options = options.iter().map(ToString::to_string).collect();
        let mut process =
            Self { dir: dir.expect("a temp dir"), port, options, child: None };
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
        let mut child = self.child.take().expect("the server runs");
        child.kill().expect("the server can be killed");
        child.wait().expect("the server ends");
    }

    pub(super) fn restart(&mut self) {
        if self.child.is_some() {
            self.kill();
        }
        self.spawn();
    }

    fn spawn(&mut self) {
        let child = Command::new("redis-server")
            .args(["--port", &self.port.unwrap_or(0).to_string()])
            .args(["--bind", "127.0.0.1"])
            .arg("--unixsocket")
            .arg(self.socket())
            .arg("--dir")
            .arg(self.dir.path())
            .args(own_options())
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts: install Redis 7.0 or later");
        self.child = Some(child);
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        let (start, address) = (Instant::now(), self.address());
        while !talk::is_ready(&address) {
            let child = self.child.as_mut().expect("the server was started");
            if let Some(status) = child.try_wait().expect("the server can be asked") {
                panic!("redis-server ended at once: {status}");
            }
            assert!(start.elapsed() < START_LIMIT, "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(1));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Some(child) = &mut self.child {
            // The process may have ended by itself, and a drop cannot report an error.
            drop(child.kill());
            drop(child.wait());
        }
    }
}
