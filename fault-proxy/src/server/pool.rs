//! Servers that pass from one test to the next.
//!
//! A start of `redis-server`, with the shells that guard it, costs some 15 ms of processor
//! time, a tenth of what the cases of a backend cost together. So a server of a test that
//! has ended serves another one, if it can be made like a new one: its data, scripts,
//! users, statistics and clients are removed, and its socket gets another path, so that no
//! client of the earlier test can come back.

use std::{
    ops::{Deref, DerefMut},
    sync::{Mutex, PoisonError},
    thread,
};

use super::process::Process;

/// The commands whose effects may outlast the removal of all data, scripts and users. The
/// names are those of `INFO commandstats`, where a subcommand follows a `|`.
const LEAVES_TRACES: [&str; 18] = [
    "bgrewriteaof",
    "bgsave",
    "client|no-evict",
    "client|pause",
    "cluster",
    "config|rewrite",
    "config|set",
    "debug",
    "failover",
    "function",
    "module",
    "psync",
    "replconf",
    "replicaof",
    "save",
    "shutdown",
    "slaveof",
    "sync",
];

/// A command that no test sends. It is counted on each server before a test gets it, so
/// the counts are whole as long as they have it: `CONFIG RESETSTAT` removes it.
const MARK: &str = "ACL WHOAMI";

/// How the server counts it.
const MARKED: &str = "acl|whoami";

/// The servers that wait for a test. There are no more of them than servers that tests
/// have used at once.
static IDLE: Mutex<Vec<Process>> = Mutex::new(Vec::new());

/// A server of a test, which another test may use afterwards.
#[derive(Debug)]
pub(super) struct Pooled(Option<Process>);

impl Pooled {
    /// A server like a new one, started if none waits.
    pub(super) fn take() -> Self {
        let waiting = IDLE.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let process = waiting.unwrap_or_else(|| Process::start(&[], None));
        process.try_ask(MARK).expect("the server answers");
        Self::only(process)
    }

    /// A server that has just been started.
    pub(super) fn only(process: Process) -> Self {
        Self(Some(process))
    }
}

impl Deref for Pooled {
    type Target = Process;

    fn deref(&self) -> &Process {
        self.0.as_ref().expect("it is taken only when this is dropped")
    }
}

impl DerefMut for Pooled {
    fn deref_mut(&mut self) -> &mut Process {
        self.0.as_mut().expect("it is taken only when this is dropped")
    }
}

impl Drop for Pooled {
    fn drop(&mut self) {
        // A failed test may leave the server in any state, so that server is not reused.
        let left = self.0.take().filter(|_| !thread::panicking());
        if let Some(process) = left.filter(Process::is_plain).and_then(renewed) {
            IDLE.lock().unwrap_or_else(PoisonError::into_inner).push(process);
        }
    }
}

/// Makes a server like a new one. `None` if that is not certain.
fn renewed(mut process: Process) -> Option<Process> {
    process.move_socket().ok()?;
    let counts = process.try_ask("INFO commandstats").ok()?;
    let commands = || counts.lines().filter_map(counted_command);
    if !commands().any(|name| name == MARKED) || commands().any(leaves_a_trace) {
        return None;
    }
    process.try_ask("CLIENT KILL TYPE normal").ok()?;
    process.try_ask("CLIENT KILL TYPE pubsub").ok()?;
    for user in process.try_ask("ACL LIST").ok()?.lines().filter_map(other_user) {
        process.try_ask(&format!("ACL DELUSER {user}")).ok()?;
    }
    let is_done = [
        "FLUSHALL SYNC",
        "SCRIPT FLUSH SYNC",
        "SLOWLOG RESET",
        "ACL LOG RESET",
        "CONFIG RESETSTAT",
    ]
    .into_iter()
    .all(|command| process.try_ask(command).is_ok_and(|reply| reply == "+OK\r\n"));
    let users = process.try_ask("ACL LIST").ok()?;
    let is_first = |line: &str| {
        // Some servers show a flag of the payloads in between.
        line.starts_with("user default on nopass ") && line.ends_with(" ~* &* +@all")
    };
    let has_first_user =
        users.lines().filter(|line| line.starts_with("user ")).all(is_first);
    (is_done && has_first_user).then_some(process)
}

/// The command that a line of `INFO commandstats` counts.
fn counted_command(line: &str) -> Option<&str> {
    Some(line.strip_prefix("cmdstat_")?.split_once(':')?.0)
}

fn leaves_a_trace(name: &str) -> bool {
    let container = name.split('|').next().unwrap_or(name);
    LEAVES_TRACES.contains(&name) || LEAVES_TRACES.contains(&container)
}

/// The name of the user of a line of `ACL LIST`, except that of the first one.
fn other_user(line: &str) -> Option<&str> {
    let name = line.strip_prefix("user ")?.split(' ').next()?;
    (name != "default").then_some(name)
}

#[cfg(test)]
mod tests {
    use std::{
        io::{Read, Write},
        os::unix::net::UnixStream,
    };

    use super::*;

    fn started() -> Process {
        let process = Process::start(&[], None);
        process.try_ask(MARK).expect("an answer");
        process
    }

    fn renew(process: Process) -> Process {
        renewed(process).expect("it can be made like new")
    }

    #[test]
    fn what_a_test_left_is_gone() {
        let process = started();
        let first = process.try_ask("ACL LIST").expect("an answer");
        for command in ["SET key value", "ACL SETUSER anna on >secret ~* +get"] {
            assert_eq!(process.try_ask(command).expect("an answer"), "+OK\r\n");
        }
        let digest = process.try_ask("SCRIPT LOAD return'1'").expect("an answer");
        let digest = digest.lines().nth(1).expect("a digest").to_owned();

        let process = renew(process);

        let ask = |command: &str| process.try_ask(command).expect("an answer");
        assert_eq!(ask("DBSIZE"), ":0\r\n");
        assert_eq!(ask(&format!("SCRIPT EXISTS {digest}")), "*1\r\n:0\r\n");
        assert_eq!(ask("ACL LIST"), first);
        assert!(!ask("INFO commandstats").contains("cmdstat_set:"));

        ask(MARK);
        renew(process);
    }

    #[test]
    fn a_client_of_the_earlier_test_is_cut_off() {
        let process = started();
        let path = process.socket();
        let mut client = UnixStream::connect(&path).expect("it connects");
        client.write_all(b"PING\r\n").expect("sent");

        let process = renew(process);

        let mut read = String::new();
        client.read_to_string(&mut read).expect("the end");
        assert_eq!(read, "+PONG\r\n");
        assert!(UnixStream::connect(path).is_err(), "the earlier path");
        assert_eq!(process.try_ask("PING").expect("an answer"), "+PONG\r\n");
    }

    #[test]
    fn a_server_that_cannot_be_made_like_new_ends() {
        for command in [
            "CONFIG SET maxmemory 1gb",
            "CLIENT PAUSE 1",
            "DEBUG SET-ACTIVE-EXPIRE 0",
            "ACL SETUSER default off",
            "REPLICAOF NO ONE",
        ] {
            let process = started();
            assert_eq!(process.try_ask(command).expect("an answer"), "+OK\r\n");

            assert!(renewed(process).is_none(), "{command}");
        }
    }

    /// The statistics would not show what came before.
    #[test]
    fn a_server_whose_statistics_were_reset_ends() {
        let process = started();
        for command in ["CONFIG SET maxmemory 1gb", "CONFIG RESETSTAT"] {
            assert_eq!(process.try_ask(command).expect("an answer"), "+OK\r\n");
        }

        assert!(renewed(process).is_none());
    }

    #[test]
    fn a_server_that_was_killed_serves_no_other_test() {
        let mut process = started();
        assert!(process.is_plain());

        process.restart();

        assert!(!process.is_plain());
    }
}
