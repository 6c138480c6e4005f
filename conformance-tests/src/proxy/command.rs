//! The proxy's classification of commands.

use super::{blocking::Blocking, request::Request};

/// How the proxy treats a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An empty array. Redis ignores it and sends no reply.
    Nothing,
    /// Passes and is not a step, because it touches no key.
    Free,
    /// TIME. The server may refuse it. Otherwise the proxy replies with its own time.
    Time,
    /// Begins a transaction. The commands in it are not steps. Their EXEC is one.
    Multi,
    /// Ends a transaction without running it.
    Discard,
    /// Ends a transaction and runs it as one step.
    Exec,
    /// Passes. Later replies use the protocol version that it names.
    Hello,
    /// Runs a script: `EVAL` and `EVAL_RO`.
    Eval,
    /// Runs a script by its digest: `EVALSHA` and `EVALSHA_RO`.
    EvalSha,
    /// `SCRIPT LOAD`.
    ScriptLoad,
    /// `SCRIPT EXISTS`.
    ScriptExists,
    /// Subscribes or unsubscribes. The server confirms it once for each channel.
    Subscription,
    /// The server may hold this command.
    Blocking(Blocking),
    /// Any other command. It is a step.
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

    /// Whether faults can be injected at the command.
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
