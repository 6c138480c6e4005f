//! A private `redis-server` for a test: on a socket of its own, gone with the test.

use std::{
    io::{Read, Write},
    net::TcpListener,
    os::unix::net::UnixStream,
    path::PathBuf,
    process::{Child, Command, Stdio},
    time::{Duration, Instant},
};

use tempfile::TempDir;

/// How long a server may take to answer its first PING.
const START_LIMIT: Duration = Duration::from_secs(10);

/// A server that ends when this is dropped.
#[derive(Debug)]
pub struct Server {
    dir: TempDir,
    port: Option<u16>,
    options: Vec<String>,
    process: Option<Child>,
}

impl Server {
    /// Starts a server without persistence, on a unix socket.
    ///
    /// # Panics
    /// When `redis-server` is not installed or does not start: a test that needs it
    /// fails and does not pass by skipping.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more options, such as `["--appendonly", "yes"]`.
    ///
    /// # Panics
    /// As [`Server::start`].
    pub fn start_with(options: &[&str]) -> Self {
        Self::launch(None, options)
    }

    /// Starts a server that also listens on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// As [`Server::start`].
    pub fn start_on_tcp() -> Self {
        Self::launch(Some(free_port()), &[])
    }

    /// The URL to reach it by.
    pub fn url(&self) -> String {
        match self.port {
            Some(port) => format!("redis://127.0.0.1:{port}/0"),
            None => format!("unix://{}", self.socket().display()),
        }
    }

    /// The path of its socket.
    pub fn socket(&self) -> PathBuf {
        self.dir.path().join("redis.sock")
    }

    /// Kills it at once, as a power loss would.
    ///
    /// # Panics
    /// When it is not running.
    pub fn kill(&mut self) {
        let mut process = self.process.take().expect("the server runs");
        process.kill().expect("the server can be killed");
        process.wait().expect("the server ends");
    }

    /// Starts it again on the same socket, with the same options and files.
    ///
    /// # Panics
    /// As [`Server::start`].
    pub fn restart(&mut self) {
        if self.process.is_some() {
            self.kill();
        }
        self.spawn();
    }

    /// Sends one command of plain words and gives the raw answer, as any client in
    /// any language might get it.
    ///
    /// # Panics
    /// When the server does not answer.
    pub fn command(&self, args: &[&[u8]]) -> Vec<u8> {
        self.try_command(args).expect("the server answers")
    }

    fn launch(port: Option<u16>, options: &[&str]) -> Self {
        let mut server = Self {
            dir: tempfile::Builder::new()
                .prefix("relq-")
                .tempdir()
                .expect("a temp dir"),
            port,
            options: options.iter().map(ToString::to_string).collect(),
            process: None,
        };
        server.spawn();
        server
    }

    fn spawn(&mut self) {
        let process = Command::new("redis-server")
            .args(["--port", &self.port.unwrap_or(0).to_string()])
            .args(["--bind", "127.0.0.1", "--save", ""])
            .arg("--unixsocket")
            .arg(self.socket())
            .arg("--dir")
            .arg(self.dir.path())
            .args(["--enable-debug-command", "yes", "--loglevel", "warning"])
            .args(&self.options)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .spawn()
            .expect("redis-server starts: install Redis 7.0 or later");
        self.process = Some(process);
        self.wait_until_ready();
    }

    fn wait_until_ready(&mut self) {
        let start = Instant::now();
        while !self.is_ready() {
            let process = self.process.as_mut().expect("the server was started");
            if let Some(status) = process.try_wait().expect("the server can be asked") {
                panic!("redis-server ended at once: {status}");
            }
            assert!(start.elapsed() < START_LIMIT, "redis-server does not answer");
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// A server with a password is ready when it asks for it.
    fn is_ready(&self) -> bool {
        let answer = self.try_command(&[b"PING"]).unwrap_or_default();
        answer == b"+PONG\r\n" || answer.starts_with(b"-NOAUTH")
    }

    fn try_command(&self, args: &[&[u8]]) -> Option<Vec<u8>> {
        let mut stream = UnixStream::connect(self.socket()).ok()?;
        stream.set_read_timeout(Some(START_LIMIT)).ok()?;
        let mut request = format!("*{}\r\n", args.len()).into_bytes();
        for arg in args {
            request.extend(format!("${}\r\n", arg.len()).into_bytes());
            request.extend(*arg);
            request.extend(b"\r\n");
        }
        stream.write_all(&request).ok()?;
        // The end of a reply shows by closing the writing side: the server answers
        // what it has and then closes.
        stream.shutdown(std::net::Shutdown::Write).ok()?;
        let mut answer = Vec::new();
        stream.read_to_end(&mut answer).ok()?;
        Some(answer)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        if let Some(process) = &mut self.process {
            // The process may have ended by itself; there is nobody left to tell.
            drop(process.kill());
            drop(process.wait());
        }
    }
}

fn free_port() -> u16 {
    let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a free port");
    listener.local_addr().expect("an address").port()
}
