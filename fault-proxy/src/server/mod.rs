//! A private Redis server for a test, which ends with the test.
//!
//! `RELQ_TEST_SERVER` selects the kind of server for a whole run:
//!
//! | value | server |
//! |---|---|
//! | not set | the `redis-server` of this machine, on a unix socket. `RELQ_TEST_PROGRAM` names another program, such as a newer Redis or a Valkey |
//! | `cluster` | the same, each as the only node of a cluster, with all 16,384 slots: a script that uses keys of several slots fails |
//! | `docker` | a container of the image `RELQ_TEST_IMAGE:RELQ_TEST_TAG`, by default `redis:8`; needs the feature `containers` |
//! | a URL, or `HOST:PORT` | that server, by one test at a time, **emptied before each**; `RELQ_TEST_CACERT` names the authority that issued its certificate, and TLS needs the feature `tls` |
//!
//! With a container or a URL, the suite starts, kills and configures what it can. A test
//! that needs more than the server allows fails and says so.

#[cfg(feature = "containers")]
mod containers;
mod given;
mod guard;
mod node;
mod pool;
mod process;
mod rewrite_aof;
mod talk;

use std::{
    ffi::OsString,
    net::{TcpListener, UdpSocket},
    ops::Range,
    path::PathBuf,
    sync::{Mutex, OnceLock, PoisonError},
    time::Duration,
};

use crate::proxy::Address;
#[cfg(feature = "containers")]
use containers::Container;
use given::Given;
pub use given::GivenServer;
pub use guard::{GuardedProcess, is_not_found};
pub use node::Node;
use pool::Pooled;
use process::Process;

/// How long a server may take to answer its first PING. Longer than any start that
/// succeeds, also on a machine that starts many containers at once.
const START_LIMIT: Duration = Duration::from_secs(60);

/// The environment variable that names the server program.
const PROGRAM: &str = "RELQ_TEST_PROGRAM";

/// The ports from which a server's port is chosen. Linux and macOS take higher ones for
/// outgoing connections, and could take such a port before the server starts.
const PORTS: Range<u16> = 20_000..32_000;

/// The server program of this machine that tests start.
fn program() -> OsString {
    std::env::var_os(PROGRAM).unwrap_or_else(|| "redis-server".into())
}

/// A Redis server, which is stopped when this value is dropped.
#[derive(Debug)]
pub struct Server(Kind);

#[derive(Debug)]
enum Kind {
    Process(Pooled),
    #[cfg(feature = "containers")]
    Container(Container),
    Given(Given),
}

/// The kind of server that the tests of this process use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Choice {
    /// A `redis-server` of this machine for each test: a new one, or one that an earlier
    /// test has used and that was made like new.
    Local,
    /// The same, in cluster mode: each is the only node of its cluster.
    Cluster,
    /// Each test starts a container of its own.
    Docker,
    /// The server that the user provided. All tests use it, one after the other.
    Given(GivenServer),
}

static CHOICE: OnceLock<Choice> = OnceLock::new();

impl Choice {
    /// Selects this server for the process, in place of `RELQ_TEST_SERVER`. Only the
    /// first call has an effect. Returns whether this was the first call.
    pub fn set(self) -> bool {
        CHOICE.set(self).is_ok()
    }

    fn get() -> Self {
        CHOICE.get_or_init(Self::of_environment).clone()
    }

    fn of_environment() -> Self {
        let chosen = std::env::var("RELQ_TEST_SERVER").unwrap_or_default();
        match chosen.as_str() {
            "" => Self::Local,
            "cluster" => Self::Cluster,
            "docker" => Self::Docker,
            address => Self::Given(address.parse().unwrap_or_else(|error| {
                panic!(
                    "RELQ_TEST_SERVER={address} is neither cluster, nor docker, nor a \
                     server: {error}"
                )
            })),
        }
    }
}

impl Server {
    /// A server without persistence: a new one, or one like it that an earlier test of this
    /// process has used.
    ///
    /// # Panics
    /// When no server can be started: a test that needs one fails, and does not pass by
    /// skipping.
    pub fn start() -> Self {
        Self::start_with(&[])
    }

    /// Starts a server with more options, such as `["--appendonly", "yes"]`.
    ///
    /// # Panics
    /// When [`Server::start`] panics, and when the selected server cannot be given these
    /// options.
    pub fn start_with(options: &[&str]) -> Self {
        Self::choose(options, None)
    }

    /// Starts a server that listens on a free port of 127.0.0.1.
    ///
    /// # Panics
    /// When [`Server::start`] panics.
    pub fn start_on_tcp() -> Self {
        Self::choose(&[], Some(free_port()))
    }

    fn choose(options: &[&str], port: Option<u16>) -> Self {
        match Choice::get() {
            Choice::Local if options.is_empty() && port.is_none() => {
                Self(Kind::Process(Pooled::take()))
            }
            Choice::Local => {
                Self(Kind::Process(Pooled::only(Process::start(options, port))))
            }
            Choice::Cluster => {
                let process = Process::start_in_cluster(options, port);
                Self(Kind::Process(Pooled::only(process)))
            }
            Choice::Docker => Self::in_container(options),
            Choice::Given(server) => {
                assert!(options.is_empty(), "a server that is given gets no options");
                let server = Self(Kind::Given(server.take()));
                let emptied = server.command(&[b"FLUSHALL"]);
                assert_eq!(emptied, b"+OK\r\n", "{server:?} can be emptied");
                server
            }
        }
    }

    #[cfg(feature = "containers")]
    fn in_container(options: &[&str]) -> Self {
        let own: Vec<_> = own_options().collect();
        let options = [&own, options].concat();
        let container = Container::start(free_port(), &options);
        let container = container
            .unwrap_or_else(|error| panic!("no server in a container: {error}"));
        let server = Self(Kind::Container(container));
        server.wait_until_ready();
        server
    }

    #[cfg(not(feature = "containers"))]
    fn in_container(_: &[&str]) -> Self {
        panic!("RELQ_TEST_SERVER=docker needs --features relq-conformance/containers");
    }

    /// Returns the URL by which a client connects to the server.
    pub fn url(&self) -> String {
        match self.address() {
            Address::Tcp(address) => format!("redis://{address}/0"),
            Address::Unix(path) => format!("unix://{}", path.display()),
            Address::Guarded(guarded) => guarded.url().to_owned(),
        }
    }

    /// Returns the address on which the server listens.
    pub fn address(&self) -> Address {
        match &self.0 {
            Kind::Process(process) => process.address(),
            #[cfg(feature = "containers")]
            Kind::Container(container) => container.address().into(),
            Kind::Given(given) => given.address(),
        }
    }

    /// Returns the path of the server's unix socket.
    ///
    /// # Panics
    /// When the server has no socket, because it is not a process of this machine.
    pub fn socket(&self) -> PathBuf {
        match &self.0 {
            Kind::Process(process) => process.socket(),
            _ => panic!("{self:?} has no unix socket: unset RELQ_TEST_SERVER"),
        }
    }

    /// Kills the server at once with SIGKILL.
    ///
    /// # Panics
    /// When the server is not running, or the suite did not start it.
    pub fn kill(&mut self) {
        match &mut self.0 {
            Kind::Process(process) => process.kill(),
            #[cfg(feature = "containers")]
            Kind::Container(container) => container.kill().expect("Docker stops it"),
            Kind::Given(_) => {
                panic!("{self:?} was not started by the suite, which cannot kill it")
            }
        }
    }

    /// Starts the server again at the same address, with the same options and files. If it
    /// has an append-only file, it has written that file anew when this returns, because
    /// the kill may have torn a transaction.
    ///
    /// # Panics
    /// When [`Server::start`] or [`Server::kill`] panics.
    pub fn restart(&mut self) {
        match &mut self.0 {
            Kind::Process(process) => process.restart(),
            #[cfg(feature = "containers")]
            Kind::Container(container) => {
                container.restart().expect("Docker starts it");
                self.wait_until_ready();
                rewrite_aof::rewrite_aof(&self.address());
            }
            Kind::Given(_) => {
                panic!("{self:?} was not started by the suite, which cannot restart it")
            }
        }
    }

    /// Sends one command with these words, and returns the raw reply in the Redis
    /// protocol.
    ///
    /// # Panics
    /// When the server does not answer.
    pub fn command(&self, args: &[&[u8]]) -> Vec<u8> {
        let answer = talk::ask(&self.address(), args);
        answer.unwrap_or_else(|error| panic!("{self:?} does not answer: {error}"))
    }

    #[cfg(feature = "containers")]
    fn wait_until_ready(&self) {
        let start = std::time::Instant::now();
        while !talk::is_ready(&self.address()) {
            assert!(start.elapsed() < START_LIMIT, "{self:?} does not answer");
            std::thread::sleep(Duration::from_millis(5));
        }
    }
}

/// Returns the options of each server that the suite starts. They turn snapshots off,
/// and allow the debug commands by which a test reads the whole state.
fn own_options() -> impl Iterator<Item = &'static str> {
    ["--save", "", "--enable-debug-command", "yes", "--loglevel", "warning"].into_iter()
}

/// Returns a free port of 127.0.0.1 for a server that is about to start. No two calls return
/// the same port while the first caller's process runs: the clients of a server that was
/// killed would reach the next server on its port, which is that of another test. A UDP
/// socket on the port, which no server uses, tells the other processes.
///
/// # Panics
/// When no port is free.
pub fn free_port() -> u16 {
    static TAKEN: Mutex<Vec<UdpSocket>> = Mutex::new(Vec::new());
    let is_free = |port: &u16| {
        let Ok(taken) = UdpSocket::bind(("127.0.0.1", *port)) else { return false };
        TAKEN.lock().unwrap_or_else(PoisonError::into_inner).push(taken);
        TcpListener::bind(("127.0.0.1", *port)).is_ok()
    };
    let mut drawn = std::iter::repeat_with(|| rand::random_range(PORTS)).take(1000);
    drawn.find(is_free).expect("a free port")
}
