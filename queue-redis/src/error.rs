//! Turns the failure of a command into an error that tells the caller whether the
//! command happened, and whether a retry is safe.

use std::fmt;

use redis::{ErrorKind, RedisError};
use relq_core::{
    Error,
    error::{BoxError, ErrorContext, Operation},
};

use crate::owner::REFUSED;

/// Error codes of a server that did not run the command now, but may run it later.
const NOT_NOW: &[&str] = &[
    "LOADING",
    "MASTERDOWN",
    "BUSY",
    "TRYAGAIN",
    "NOREPLICAS",
    "UNBLOCKED",
    "MISCONF",
    "EXECABORT",
    "NOSCRIPT",
];

/// Error codes that say that the user lacks a permission.
const DENIED: &[&str] = &["NOAUTH", "WRONGPASS", "NOPERM"];

/// The messages of a server if a script runs a command that the user may not run, with
/// the code `ERR`. The first text is that of Redis 7.0, which does not name the command;
/// the second is that of Redis 8 and Valkey 8.
const DENIED_IN_SCRIPT: &[&str] =
    &["The user executing the script can't", "ACL failure in script"];

/// Error codes that say that a key has the wrong type.
const UNUSABLE: &[&str] = &["WRONGTYPE"];

/// Error codes of a cluster node that redirects to another node. A plain server, or the
/// only node of a cluster, never redirects.
const ELSEWHERE: &[&str] = &["MOVED", "ASK", "CROSSSLOT"];

const NODE_ELSEWHERE: &str = "the server is a node of a Redis Cluster, and keys of this \
    queue are on another node: name the nodes by redis-cluster://HOST:PORT,HOST:PORT";
const NODE_WITHOUT_SLOT: &str = "the server is a node of a Redis Cluster, and does not \
    serve this queue's keys: name the nodes by redis-cluster://HOST:PORT,HOST:PORT";
const UNKNOWN_COMMAND: &str = "the server does not know a command that every Redis 7.0 \
    has: it is a Redis Sentinel, a proxy, or has renamed it; relq needs a plain server, \
    so name one";

const OTHER_PROTOCOL: &str = "the program at this address does not answer as Redis does: \
    it is another one, or a server that only accepts TLS";

/// The first words of an error about a wrong setting of this process, such as an
/// unreadable certificate file.
pub(crate) const MISCONFIGURED: &str = "a setting of this process is wrong";

/// A server's refusal of a command, together with relq's explanation of what it says
/// about the server.
#[derive(Debug)]
struct Explained {
    words: &'static str,
    source: RedisError,
}

/// The context of an error while connecting.
pub(crate) fn at_connecting(backend: &'static str) -> ErrorContext {
    ErrorContext { backend, operation: Operation::Connect }
}

/// The error to return for a command that was sent and failed.
pub(crate) fn after_send(at: ErrorContext, error: RedisError) -> Error {
    match error.code() {
        // A script may have failed after its first write, and its writes are not undone.
        Some(_) if is_denied_in_script(&error) => {
            Error::Interrupted { at, source: Box::new(denied(at, error)) }
        }
        Some("OOM") => Error::Full { at, source: Box::new(error) },
        Some("READONLY") => Error::ReadOnly { at, source: Box::new(error) },
        Some("CLUSTERDOWN") => {
            Error::Unusable { at, source: explained(NODE_WITHOUT_SLOT, error) }
        }
        Some(code) if ELSEWHERE.contains(&code) => {
            Error::WrongServer { at, source: explained(NODE_ELSEWHERE, error) }
        }
        Some(code) if NOT_NOW.contains(&code) => unavailable(at, error),
        Some(code) if DENIED.contains(&code) => denied(at, error),
        Some(code) if UNUSABLE.contains(&code) => unusable(at, error),
        Some(_) if is_raised_in_script(&error) => interrupted(at, error),
        Some(_) if is_too_many_clients(&error) => unavailable(at, error),
        Some(_) if is_unknown_command(&error) => {
            Error::WrongServer { at, source: explained(UNKNOWN_COMMAND, error) }
        }
        Some(_) => unusable(at, error),
        None => interrupted(at, error),
    }
}

/// The error to return if connecting failed, so that no command was sent.
pub(crate) fn before_send(at: ErrorContext, error: RedisError) -> Error {
    match error.kind() {
        ErrorKind::AuthenticationFailed => denied(at, error),
        ErrorKind::InvalidClientConfig => refused(at, error),
        ErrorKind::Parse => {
            Error::Unavailable { at, source: explained(OTHER_PROTOCOL, error) }
        }
        _ if error.code().is_some() => after_send(at, error),
        _ => unavailable(at, error),
    }
}

/// The error for a reply of an unexpected type or form.
pub(crate) fn unreadable(at: ErrorContext, source: impl Into<BoxError>) -> Error {
    Error::Unreadable { at, source: source.into() }
}

/// Returns the error for a cluster whose nodes did not agree in time which of them
/// serves the queue's keys. No node ran the command.
pub(crate) fn unsettled(error: &RedisError) -> RedisError {
    let text = format!("the cluster does not serve the queue's slot now: {error}");
    std::io::Error::new(std::io::ErrorKind::TimedOut, text).into()
}

/// Whether a new connection may help after this error: the current one is broken, or
/// leads to a server that was demoted.
pub(crate) fn condemns_connection(error: &RedisError) -> bool {
    match error.code() {
        Some(code) => matches!(
            code,
            "READONLY" | "MASTERDOWN" | "UNBLOCKED" | "MOVED" | "CLUSTERDOWN"
        ),
        None => true,
    }
}

fn is_denied_in_script(error: &RedisError) -> bool {
    let detail = error.detail().unwrap_or_default();
    DENIED_IN_SCRIPT.iter().any(|words| detail.contains(*words))
}

fn is_raised_in_script(error: &RedisError) -> bool {
    error.detail().is_some_and(|detail| detail.contains("user_script"))
}

fn is_too_many_clients(error: &RedisError) -> bool {
    error.detail().is_some_and(|detail| detail.contains("max number of clients"))
}

fn is_unknown_command(error: &RedisError) -> bool {
    error.detail().is_some_and(|detail| detail.starts_with("unknown command"))
}

fn explained(words: &'static str, source: RedisError) -> BoxError {
    Box::new(Explained { words, source })
}

/// The error for a queue that this client must not use or a wrong setting of this
/// process. Its source is only the text that relq wrote, without the client library's
/// words.
fn refused(at: ErrorContext, error: RedisError) -> Error {
    match error.detail() {
        Some(why) if is_own(&error) => Error::Unusable { at, source: why.into() },
        _ => unusable(at, error),
    }
}

/// Whether relq itself, and not the client library, made this error.
fn is_own(error: &RedisError) -> bool {
    let text = error.to_string();
    [REFUSED, MISCONFIGURED].iter().any(|beginning| text.starts_with(beginning))
}

fn unavailable(at: ErrorContext, error: RedisError) -> Error {
    Error::Unavailable { at, source: Box::new(error) }
}

fn denied(at: ErrorContext, error: RedisError) -> Error {
    Error::Denied { at, source: Box::new(error) }
}

fn unusable(at: ErrorContext, error: RedisError) -> Error {
    Error::Unusable { at, source: Box::new(error) }
}

fn interrupted(at: ErrorContext, error: RedisError) -> Error {
    Error::Interrupted { at, source: Box::new(error) }
}

impl fmt::Display for Explained {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.words)
    }
}

impl std::error::Error for Explained {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        Some(&self.source)
    }
}

/// The error with which the server refuses a command.
#[cfg(test)]
pub(crate) fn refusal(reply: &str) -> RedisError {
    let read = redis::parse_redis_value(format!("-{reply}\r\n").as_bytes());
    read.and_then(redis::Value::extract_error).unwrap_err()
}

#[cfg(test)]
mod tests {
    use std::io;

    use relq_core::error::Effect;

    use super::*;

    /// R21: a script may fail behind its first write, whichever version of the server says
    /// so. A command that the server refused as a whole did nothing.
    #[test]
    fn only_an_error_from_within_a_script_may_have_an_effect() {
        let (at_a_line, at) = ("script: 1a, on @user_script:7.", at_connecting("test"));
        for (reply, effect, needs_help) in [
            (format!("ERR value is no number {at_a_line}"), Effect::Maybe, false),
            (
                "ERR Error running script, @user_script:7: no".into(),
                Effect::Maybe,
                false,
            ),
            (
                format!("ERR The user executing the script can't run it {at_a_line}"),
                Effect::Maybe,
                true,
            ),
            (
                format!("ERR ACL failure in script: User u may not {at_a_line}"),
                Effect::Maybe,
                true,
            ),
            ("EXECABORT Transaction discarded".into(), Effect::No, false),
            ("UNBLOCKED force unblock from an operation".into(), Effect::No, false),
            ("CROSSSLOT Keys don't hash to the same slot".into(), Effect::No, true),
            ("ASK 3999 127.0.0.1:6381".into(), Effect::No, true),
            ("WRONGPASS invalid username-password pair".into(), Effect::No, true),
            ("ERR wrong number of arguments".into(), Effect::No, true),
        ] {
            let error = after_send(at, refusal(&reply));

            let told = (error.effect(), error.needs_help());
            assert_eq!(told, (effect, needs_help), "{reply}: {error:?}");
        }
    }

    /// R21: connections are reopened. A server that was demoted, or that lost its slot, keeps
    /// its connections, so only its refusal tells a client to leave it. Any other refusal
    /// would be the same on a new connection.
    #[test]
    fn calls_leave_a_connection_that_leads_to_the_wrong_server() {
        for (reply, leaves) in [
            ("READONLY You can't write against a read only replica.", true),
            ("MASTERDOWN Link with MASTER is down", true),
            ("UNBLOCKED force unblock from blocking operation", true),
            ("MOVED 3999 127.0.0.1:6381", true),
            ("CLUSTERDOWN The cluster is down", true),
            ("ASK 3999 127.0.0.1:6381", false),
            ("TRYAGAIN Multiple keys request during rehashing of slot", false),
            ("LOADING Redis is loading the dataset in memory", false),
            ("BUSY Redis is busy running a script.", false),
            ("OOM command not allowed when used memory > 'maxmemory'.", false),
            ("NOPERM this user has no permissions", false),
            ("NOSCRIPT No matching script.", false),
            ("WRONGTYPE Operation against a key", false),
            ("ERR unknown command", false),
        ] {
            assert_eq!(condemns_connection(&refusal(reply)), leaves, "{reply}");
        }
        let lost = io::Error::from(io::ErrorKind::ConnectionReset).into();
        assert!(condemns_connection(&lost), "a connection that is broken");
    }
}
