//! How the proxy treats each command, by its name.

use super::{blocking::Blocking, request::Request};

/// How the proxy treats a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An empty array. Redis ignores it and sends no reply.
    Nothing,
    /// Touches no key: the proxy passes it on, and it is not a step.
    Free,
    /// `TIME`. The server may refuse it. Otherwise the proxy replies with its own time.
    Time,
    /// `MULTI` begins a transaction. The commands in it are not steps. Their `EXEC` is
    /// one.
    Multi,
    /// `DISCARD` ends a transaction without running it.
    Discard,
    /// `EXEC` ends a transaction and runs it as one step.
    Exec,
    /// `HELLO`. Later replies use the protocol version that it names.
    Hello,
    /// Runs a script: `EVAL` and `EVAL_RO`.
    Eval,
    /// Runs a script by its digest: `EVALSHA` and `EVALSHA_RO`.
    EvalSha,
    /// `SCRIPT LOAD`, which stores a script at the server.
    ScriptLoad,
    /// `SCRIPT EXISTS`, which asks for scripts by their digests.
    ScriptExists,
    /// Subscribes or unsubscribes. The server confirms it once for each channel.
    Subscription,
    /// A command that the server may hold until data arrives or a time limit passes.
    Blocking(Blocking),
    /// Any other command. The proxy counts it as a step, at which a fault can be
    /// injected.
    Plain,
    /// The proxy cannot carry this command. The text is the reason.
    Refused(&'static str),
}

impl Kind {
    pub(crate) fn of(request: &Request) -> Self {
        if request.len() == 0 {
            return Self::Nothing;
        }
        match request.word(0).as_str() {
            "TIME" if request.len() == 1 => Self::Time,
            "MULTI" => Self::Multi,
            "DISCARD" | "RESET" => Self::Discard,
            "EXEC" => Self::Exec,
            "HELLO" => Self::Hello,
            "AUTH" | "SELECT" | "PING" | "INFO" | "COMMAND" | "QUIT" | "ECHO" => {
                Self::Free
            }
            "CLIENT" => Self::of_client(request),
            "SCRIPT" => Self::of_script(request),
            "EVAL" | "EVAL_RO" => Self::Eval,
            "EVALSHA" | "EVALSHA_RO" => Self::EvalSha,
            "SUBSCRIBE" | "PSUBSCRIBE" | "SSUBSCRIBE" | "UNSUBSCRIBE"
            | "PUNSUBSCRIBE" | "SUNSUBSCRIBE" => Self::Subscription,
            "MONITOR" | "SYNC" | "PSYNC" => {
                Self::Refused("the proxy cannot carry endless replies")
            }
            "FUNCTION" if matches!(&*request.word(1), "LOAD" | "RESTORE") => {
                Self::Refused("the proxy cannot keep the time inside functions")
            }
            _ => Blocking::of(request).map_or(Self::Plain, Self::Blocking),
        }
    }

    fn of_client(request: &Request) -> Self {
        match request.word(1).as_str() {
            "REPLY" => Self::Refused("the proxy must see every reply to count it"),
            _ => Self::Free,
        }
    }

    fn of_script(request: &Request) -> Self {
        match request.word(1).as_str() {
            "LOAD" if request.len() == 3 => Self::ScriptLoad,
            "EXISTS" => Self::ScriptExists,
            _ => Self::Free,
        }
    }

    /// Whether the command is a step, so that a fault can be injected at it.
    pub(crate) fn is_step(self) -> bool {
        matches!(
            self,
            Self::Exec
                | Self::Eval
                | Self::EvalSha
                | Self::Subscription
                | Self::Blocking(_)
                | Self::Plain
        )
    }
}
