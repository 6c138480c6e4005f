//! Stores for the tests, and calls of the program on them.

use std::{
    env,
    io::{Read, Write},
    path::PathBuf,
    process::{Child, Command, Stdio},
    sync::{Arc, Mutex},
    thread::{self, JoinHandle},
    time::{Duration, Instant},
};

use relq_conformance::server::Server;
use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;
use tempfile::TempDir;

/// How long a test waits for any condition before it fails. `RELQ_TEST_SECONDS` is for
/// the mutants: a healthy program needs little of this time, and a broken one all of it.
fn limit() -> Duration {
    let seconds = env::var("RELQ_TEST_SECONDS").map(|it| it.parse().unwrap());
    Duration::from_secs(seconds.unwrap_or(120))
}

/// A store that is removed at the end of the test, and a folder for its files.
pub(crate) struct Store {
    pub(crate) url: String,
    pub(crate) folder: TempDir,
    server: Option<Server>,
}

impl Store {
    pub(crate) fn sqlite() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("sqlite:{}", folder.path().join("test.db").display());
        Self { url, folder, server: None }
    }

    pub(crate) fn redis() -> Self {
        Self::on("zset", Server::start())
    }

    /// A Redis store with the stream backend, which supports batches.
    pub(crate) fn stream() -> Self {
        Self::on("stream", Server::start())
    }

    pub(crate) fn redis_on_tcp() -> Self {
        Self::on_tcp("zset")
    }

    /// A Redis store with the named backend, on a server that listens on TCP.
    pub(crate) fn on_tcp(backend: &str) -> Self {
        Self::on(backend, Server::start_on_tcp())
    }

    pub(crate) fn redis_with(options: &[&str]) -> Self {
        Self::on("zset", Server::start_with(options))
    }

    /// A store on a Redis server that accepts TLS, with a certificate and a key from
    /// these files.
    #[cfg(feature = "tls")]
    pub(crate) fn redis_in_tls(certificate: &str, key: &str) -> Self {
        let port = relq_conformance::server::free_port();
        let mut options = vec!["--tls-port".to_owned(), port.to_string()];
        options.extend(["--tls-cert-file", certificate].map(str::to_owned));
        options.extend(["--tls-key-file", key].map(str::to_owned));
        options.extend(["--tls-auth-clients", "no"].map(str::to_owned));
        let options: Vec<_> = options.iter().map(String::as_str).collect();
        let url = format!("rediss://localhost:{port}");
        Self { url, ..Self::redis_with(&options) }
    }

    pub(crate) fn on(backend: &str, server: Server) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let url = format!("{backend}+{}", server.url());
        Self { url, folder, server: Some(server) }
    }

    pub(crate) fn server(&mut self) -> &mut Server {
        self.server.as_mut().expect("this store is a Redis server")
    }

    pub(crate) fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// A call of the program. Its arguments are the words of `line`, split at blanks.
    pub(crate) fn relq(&self, line: &str) -> Relq {
        self.relq_with(&line.split_whitespace().collect::<Vec<_>>())
    }

    /// A call of the program with exactly these arguments.
    pub(crate) fn relq_with(&self, arguments: &[&str]) -> Relq {
        let mut command = Command::new(env!("CARGO_BIN_EXE_relq"));
        command.args(arguments).env("RELQ_URL", &self.url).env_remove("RELQ_LOG");
        command.current_dir(self.folder.path());
        Relq { command, input: Vec::new() }
    }

    /// A shell in the folder of the store, without the URL of the store. `$0` is the
    /// program.
    pub(crate) fn shell(&self, script: &str) -> Relq {
        let mut command = Command::new("sh");
        command.args(["-c", script, env!("CARGO_BIN_EXE_relq")]).env_remove("RELQ_URL");
        command.current_dir(self.folder.path());
        Relq { command, input: Vec::new() }
    }

    /// Creates the store by a push to another queue, for a test whose first command
    /// needs an existing store.
    pub(crate) fn create(&self) {
        self.push("-q created job");
    }

    /// Runs `relq stats` on a queue. Returns one of its numbers, such as `ready`.
    pub(crate) fn count(&self, queue: &str, figure: &str) -> u64 {
        self.relq(&format!("stats --json -q {queue}")).json()[figure].as_u64().unwrap()
    }

    /// Runs `relq push` with these arguments. Returns the ids that it prints.
    pub(crate) fn push(&self, line: &str) -> Vec<String> {
        let out = self.relq(&format!("push {line}")).ok();
        out.lines().map(str::to_owned).collect()
    }
}

/// A call of the program that is not started yet.
pub(crate) struct Relq {
    command: Command,
    input: Vec<u8>,
}

/// The exit code and the outputs of a call that has ended.
pub(crate) struct Ended {
    pub(crate) code: Option<i32>,
    pub(crate) out: Vec<u8>,
    pub(crate) err: String,
}

impl Relq {
    pub(crate) fn input(mut self, input: impl Into<Vec<u8>>) -> Self {
        self.input = input.into();
        self
    }

    pub(crate) fn env(mut self, name: &str, value: &str) -> Self {
        self.command.env(name, value);
        self
    }

    pub(crate) fn no_env(mut self, name: &str) -> Self {
        self.command.env_remove(name);
        self
    }

    /// Limits the number of files that the program may open.
    pub(crate) fn with_files(self, most: u32) -> Self {
        self.after(&format!("ulimit -n {most}"))
    }

    /// Starts the program with SIGHUP ignored, as `nohup` does.
    pub(crate) fn ignoring_hangups(self) -> Self {
        self.after("trap '' HUP")
    }

    /// Starts the program from a shell, after the shell has run this command.
    fn after(self, command: &str) -> Self {
        let mut shell = Command::new("sh");
        shell.args(["-c", &format!("{command}; exec \"$0\" \"$@\"")]);
        shell.arg(self.command.get_program()).args(self.command.get_args());
        for (name, value) in self.command.get_envs() {
            match value {
                Some(value) => shell.env(name, value),
                None => shell.env_remove(name),
            };
        }
        shell.current_dir(self.command.get_current_dir().unwrap());
        Self { command: shell, input: self.input }
    }

    /// Starts the program, with its standard streams connected to the test.
    pub(crate) fn start(self) -> Running {
        self.start_with(Stdio::piped(), Stdio::piped())
    }

    /// Starts the program with this terminal as its standard output.
    pub(crate) fn start_on(self, terminal: std::fs::File) -> Running {
        self.start_with(terminal.into(), Stdio::piped())
    }

    /// Starts the program with this terminal as its standard error.
    pub(crate) fn start_with_errors_on(self, terminal: std::fs::File) -> Running {
        self.start_with(Stdio::piped(), terminal.into())
    }

    /// Starts the program with a standard output that no process reads.
    pub(crate) fn start_without_output(self) -> Running {
        self.start_with(unread(), Stdio::piped())
    }

    /// Starts the program with a standard error that no process reads.
    pub(crate) fn start_without_errors(self) -> Running {
        self.start_with(Stdio::piped(), unread())
    }

    fn start_with(mut self, out: Stdio, err: Stdio) -> Running {
        let command = self.command.stdin(Stdio::piped()).stdout(out).stderr(err);
        Running::new(command.spawn().unwrap())
    }

    /// The arguments of the call, for a message.
    fn line(&self) -> String {
        let words: Vec<_> =
            self.command.get_args().map(|it| it.to_string_lossy()).collect();
        format!("relq {}", words.join(" "))
    }

    /// Runs the program to its end.
    pub(crate) fn run(mut self) -> Ended {
        let input = std::mem::take(&mut self.input);
        let mut running = self.start();
        let mut stdin = running.child.stdin.take().unwrap();
        // Ignore a failed write: the program may end before it has read all input.
        let feeder = thread::spawn(move || drop(stdin.write_all(&input)));
        let ended = running.end();
        feeder.join().unwrap();
        ended
    }

    /// Runs the program, expects success, and returns its output.
    #[track_caller]
    pub(crate) fn ok(self) -> String {
        let line = self.line();
        let ended = self.run();
        assert_eq!(ended.code, Some(0), "the exit code of `{line}`: {}", ended.err);
        String::from_utf8(ended.out).unwrap()
    }

    /// Runs the program, expects success, and returns the JSON value that it printed.
    #[track_caller]
    pub(crate) fn json(self) -> Value {
        let out = self.ok();
        serde_json::from_str(&out).unwrap_or_else(|error| panic!("{error}: {out}"))
    }

    /// Runs the program, expects a failure with that code, and returns its error text.
    #[track_caller]
    pub(crate) fn fails(self, code: i32) -> String {
        let line = self.line();
        let ended = self.run();
        assert_eq!(ended.code, Some(code), "the exit code of `{line}`: {}", ended.err);
        assert!(!ended.err.contains("panicked"), "{}", ended.err);
        ended.err
    }
}

/// The end of a pipe that no process reads.
fn unread() -> Stdio {
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    writer.into()
}

/// A running call of the program. Dropping this value kills it.
pub(crate) struct Running {
    pub(crate) child: Child,
    out: Gathered,
    err: Gathered,
}

/// The output that was read from one stream so far, and the thread that reads it.
#[derive(Clone, Default)]
struct Gathered(Arc<Mutex<Vec<u8>>>, Arc<Mutex<Option<JoinHandle<()>>>>);

impl Gathered {
    fn from(mut end: impl Read + Send + 'static) -> Self {
        let gathered = Self::default();
        let bytes = Arc::clone(&gathered.0);
        let reader = thread::spawn(move || {
            let mut chunk = [0; 8192];
            while let Ok(length @ 1..) = end.read(&mut chunk) {
                bytes.lock().unwrap().extend(&chunk[..length]);
            }
        });
        gathered.1.lock().unwrap().replace(reader);
        gathered
    }

    fn so_far(&self) -> Vec<u8> {
        self.0.lock().unwrap().clone()
    }

    fn is_closed(&self) -> bool {
        self.1.lock().unwrap().as_ref().is_none_or(JoinHandle::is_finished)
    }

    fn to_the_end(&self) -> Vec<u8> {
        if let Some(reader) = self.1.lock().unwrap().take() {
            reader.join().unwrap();
        }
        self.so_far()
    }
}

impl Running {
    fn new(mut child: Child) -> Self {
        let out = child.stdout.take().map(Gathered::from).unwrap_or_default();
        let err = child.stderr.take().map(Gathered::from).unwrap_or_default();
        Self { child, out, err }
    }

    pub(crate) fn signal(&self, signal: Signal) {
        let pid = i32::try_from(self.child.id()).unwrap();
        kill_process(Pid::from_raw(pid).unwrap(), signal).unwrap();
    }

    /// Sends SIGTERM twice, so that the worker stops hard and kills its commands.
    pub(crate) fn stop_hard(&mut self) {
        self.signal(Signal::TERM);
        self.wait_for_error("stopping");
        self.signal(Signal::TERM);
        self.end();
    }

    pub(crate) fn kill(&mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Waits until no process holds the program's output open: neither the program nor
    /// a process that it started.
    pub(crate) fn wait_for_closed_output(&self) {
        wait_until("its output is closed", || self.out.is_closed());
    }

    /// Closes the input of the program and waits for its end.
    pub(crate) fn end(&mut self) -> Ended {
        drop(self.child.stdin.take());
        self.end_by_itself()
    }

    /// Waits until the program ends, without closing its input.
    pub(crate) fn end_by_itself(&mut self) -> Ended {
        let status = eventually("the program ends", || self.child.try_wait().unwrap());
        let (out, err) = (self.out.to_the_end(), self.err.to_the_end());
        let err = String::from_utf8_lossy(&err).into_owned();
        Ended { code: status.code(), out, err }
    }

    /// The error output of the program so far.
    pub(crate) fn errors(&self) -> String {
        String::from_utf8_lossy(&self.err.so_far()).into_owned()
    }

    /// Waits until the error output of the program contains this text.
    #[track_caller]
    pub(crate) fn wait_for_error(&self, words: &str) {
        wait_until(words, || self.errors().contains(words));
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        drop(self.child.kill());
        drop(self.child.wait());
    }
}

/// Calls `ask` until it returns a value, for at most [`limit`].
#[track_caller]
pub(crate) fn eventually<T>(what: &str, mut ask: impl FnMut() -> Option<T>) -> T {
    let start = Instant::now();
    loop {
        if let Some(answer) = ask() {
            return answer;
        }
        assert!(start.elapsed() < limit(), "it does not come true: {what}");
        thread::sleep(Duration::from_millis(10));
    }
}

/// Waits until `is_true` returns true.
#[track_caller]
pub(crate) fn wait_until(what: &str, mut is_true: impl FnMut() -> bool) {
    eventually(what, || is_true().then_some(()));
}

/// Whether a process with this id is running. One that has ended may have its id for a
/// while, until its parent has read how it ended.
pub(crate) fn is_alive(pid: i32) -> bool {
    let has_ended = std::fs::read_to_string(format!("/proc/{pid}/status"))
        .is_ok_and(|status| status.contains("State:\tZ"));
    !has_ended
        && rustix::process::test_kill_process(Pid::from_raw(pid).unwrap()).is_ok()
}

/// The ids of the processes that the process `parent` has started.
#[cfg(target_os = "linux")]
pub(crate) fn children_of(parent: u32) -> Vec<u32> {
    let ids = std::fs::read_dir("/proc").unwrap().filter_map(|entry| {
        entry.unwrap().file_name().to_str().and_then(|name| name.parse().ok())
    });
    let is_child = |id: &u32| {
        let status = std::fs::read_to_string(format!("/proc/{id}/status"));
        status.is_ok_and(|status| status.contains(&format!("PPid:\t{parent}\n")))
    };
    ids.filter(is_child).collect()
}
