//! Why a command failed, and what the user can do about it.

use std::{
    io,
    process::{self, ExitCode},
};

use relq::{ConnectError, Error, error::Effect, followers::CannotFollow};

use crate::{
    message::{say, say_lines},
    printable::printable_lines,
};

/// The result of a command: a value, or the failure to report.
pub type CommandResult<T = ()> = Result<T, Failure>;

/// Why a command failed, which decides its message and its exit code.
#[derive(Debug)]
pub enum Failure {
    /// The command line is invalid: exit code 2.
    Usage(String),
    /// The command failed, and the message must be printed: exit code 1.
    Failed(String),
    /// The command ended as intended, but not all of the jobs that it ran are done.
    Unfinished {
        /// The exit code, which tells the caller in which state the jobs are.
        code: u8,
        /// The state of the jobs, in words.
        message: String,
    },
    /// The command failed, and has already printed the reason: exit code 1.
    Reported,
    /// The reader of the output closed it, as `head` does. No message is printed, and
    /// the exit code is 0.
    OutputClosed,
}

impl Failure {
    /// Prints the failure of `program` on standard error, and returns the exit code.
    pub fn report(&self, program: &str) -> ExitCode {
        match self {
            Self::Usage(message) => {
                say(&format!("{program}: {message}"));
                ExitCode::from(2)
            }
            Self::Failed(message) => {
                say(&format!("{program}: {message}"));
                ExitCode::FAILURE
            }
            Self::Unfinished { code, message } => {
                say(&format!("{program}: {message}"));
                ExitCode::from(*code)
            }
            Self::Reported => ExitCode::FAILURE,
            Self::OutputClosed => ExitCode::SUCCESS,
        }
    }

    /// Adds what was done before the command failed to the message.
    #[must_use]
    pub fn after(self, done: &str) -> Self {
        match self {
            Self::Failed(message) => Self::Failed(format!("{message}; {done}")),
            other => other,
        }
    }

    /// Converts an error of writing to standard output into a failure.
    pub fn output(error: &io::Error) -> Self {
        if error.kind() == io::ErrorKind::BrokenPipe {
            return Self::OutputClosed;
        }
        Self::Failed(format!("cannot write to standard output: {error}"))
    }
}

/// Ignores that the reader of the output has closed it. A command that has more to do
/// than to print then continues, and its exit code still says how it ended.
pub fn unless_closed(printed: CommandResult) -> CommandResult {
    match printed {
        Err(Failure::OutputClosed) => Ok(()),
        printed => printed,
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Failed(explain(&error))
    }
}

impl From<ConnectError> for Failure {
    fn from(error: ConnectError) -> Self {
        match error {
            ConnectError::Queue(error) => error.into(),
            url => Self::Usage(url.to_string()),
        }
    }
}

/// Returns the message of an error with all its causes, and advice for the user.
pub fn explain(error: &Error) -> String {
    let message = error.full_message();
    match remedy(error) {
        Some(remedy) => format!("{message}; {remedy}"),
        None => message,
    }
}

fn remedy(error: &Error) -> Option<&'static str> {
    match error {
        _ if error.effect() != Effect::No => {
            Some("look with `relq stats` before you try again")
        }
        Error::Unavailable { .. } | Error::Interrupted { .. }
            if !error.needs_help() =>
        {
            Some(
                "check that the store of --url is up and can be reached, and try again",
            )
        }
        Error::Denied { .. } => {
            Some("check the user, password and permissions of --url")
        }
        Error::CannotFollow { why: CannotFollow::Unknown, .. } => {
            Some("push the job that is followed with --id or --keep-result")
        }
        Error::Full { .. } => Some("free some of its memory or disk, and try again"),
        Error::Unusable { .. } => {
            Some("if this cannot be repaired, choose another --url or another --queue")
        }
        _ => None,
    }
}

/// Prints the requested help, or the error in the command line, and exits.
pub fn end(error: &clap::Error) -> ! {
    let message = error.render().to_string();
    if printable_lines(&message) == message {
        error.exit();
    }
    // The message quotes words of the command line, which may be untrusted.
    say_lines(message.trim_end());
    process::exit(error.exit_code());
}

#[cfg(test)]
mod tests {
    use relq::{
        JobId,
        error::{BoxError, ErrorContext, Operation},
    };

    use super::*;

    const AT: ErrorContext =
        ErrorContext { backend: "mine", operation: Operation::Push };

    /// The context of a call that only reads.
    const AT_READING: ErrorContext =
        ErrorContext { backend: "mine", operation: Operation::Stats };

    fn cannot_follow(why: CannotFollow) -> Error {
        let leader = JobId::new("leader").expect("it is an id");
        Error::CannotFollow { at: AT, leader, why }
    }

    /// A user acts on the advice, so that of one error must not be given for another.
    #[test]
    fn each_error_has_its_own_advice() {
        let source = || BoxError::from("the test says so");
        let look = "look with `relq stats` before you try again";
        let check =
            "check that the store of --url is up and can be reached, and try again";
        for (error, advice) in [
            (Error::Unavailable { at: AT, source: source() }, check),
            (Error::Interrupted { at: AT_READING, source: source() }, check),
            (
                Error::Denied { at: AT, source: source() },
                "check the user, password and permissions of --url",
            ),
            (
                Error::Full { at: AT, source: source() },
                "free some of its memory or disk, and try again",
            ),
            (
                Error::Unusable { at: AT, source: source() },
                "if this cannot be repaired, choose another --url or another --queue",
            ),
            (
                cannot_follow(CannotFollow::Unknown),
                "push the job that is followed with --id or --keep-result",
            ),
            (Error::Interrupted { at: AT, source: source() }, look),
            (Error::NotReplicated { at: AT, source: source() }, look),
            (Error::Unreadable { at: AT, source: source() }, look),
        ] {
            let expected = format!("{}; {advice}", error.full_message());
            assert_eq!(explain(&error), expected);
        }
        let denied = Error::Denied { at: AT_READING, source: source() };
        for error in [
            cannot_follow(CannotFollow::NotDone),
            Error::Interrupted { at: AT_READING, source: denied.into() },
            Error::Unreadable { at: AT_READING, source: source() },
            Error::ReadOnly { at: AT, source: source() },
            Error::Invalid { at: AT, reason: "it is wrong".to_owned() },
        ] {
            assert_eq!(explain(&error), error.full_message(), "without advice");
        }
    }
}
