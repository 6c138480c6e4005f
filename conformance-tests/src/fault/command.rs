//! What a command is to the proxy.

use super::{blocking::Blocking, request::Request};

/// How the proxy treats a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Kind {
    /// An empty array, which Redis passes over without an answer.
    Nothing,
    /// Passes and is no step: it touches no key.
    Free,
    /// The server may refuse it; the proxy answers it: time.
    Time,
    /// Begins a transaction. Its commands are no steps; their EXEC is one.
    Multi,
    /// Ends a transaction and does nothing.
    Discard,
    /// Ends a transaction and runs it: one step.
    Exec,
    /// Passes, and from then on replies are of the version that it names.
    Hello,
    /// Runs a script: `EVAL` and `EVAL_RO`.
    Eval,
    /// Runs a script by its digest: `EVALSHA` and `EVALSHA_RO`.
    EvalSha,
    /// `SCRIPT LOAD`.
    ScriptLoad,
    /// `SCRIPT EXISTS`.
    ScriptExists,
    /// Subscribes or unsubscribes: is confirmed once a channel.
    Subscription,
    /// The server may hold it.
    Blocking(Blocking),
    /// Any other: a step.
    Plain,
    /// The proxy cannot carry it; why.
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
                Self::Refused("the proxy carries no endless replies")
            }
            "FUNCTION" if matches!(&*request.word(1), "LOAD" | "RESTORE") => {
                Self::Refused("the proxy cannot keep the time inside functions")
            }
            _ => Blocking::of(request).map_or(Self::Plain, Self::Blocking),
        }
    }

    fn of_client(request: &Request) -> Self {
        match request.word(1).as_str() {
            "REPLY" => Self::Refused("the proxy counts replies, so all must come"),
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

    /// Whether faults can strike it.
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
