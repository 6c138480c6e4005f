//! The error type of all backends. Each variant is a case that a caller can handle.

use crate::{
    JobId,
    error::{BoxError, Effect, ErrorContext, Operation, RetryAdvice},
    followers::CannotFollow,
};

/// Why a call failed (R21).
///
/// Nothing ready, a duplicate and a lost lease are outcomes, not errors.
///
/// A caller that handles all variants alike asks for the advice:
///
/// ```
/// use relq_core::{Error, error::{Effect, RetryAdvice}};
///
/// fn next_step(error: &Error) -> &'static str {
///     match (error, error.retry_advice()) {
///         (Error::Full { .. }, _) => "alert an operator, and push later",
///         (_, RetryAdvice::Safe) => "repeat the call after a pause",
///         (_, RetryAdvice::MayRepeat) => "repeat the push if it has a token",
///         (_, RetryAdvice::Never) => "repair the call or the store first",
///     }
/// }
/// # use relq_core::error::{ErrorContext, Operation};
/// let at = ErrorContext { backend: "zset", operation: Operation::Push };
/// let error = Error::Interrupted { at, source: "connection reset".into() };
/// assert_eq!(error.effect(), Effect::Maybe);
/// assert_eq!(next_step(&error), "repeat the push if it has a token");
/// ```
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request breaks a stated limit or is invalid. Nothing was done.
    #[error("{at}: {reason}")]
    Invalid {
        /// Where the error occurred.
        at: ErrorContext,
        /// The reason for the refusal.
        reason: String,
    },
    /// The request uses an option that the backend does not support. Nothing was done.
    #[error("{at}: {option} is not an option of this backend")]
    Unsupported {
        /// Where the error occurred.
        at: ErrorContext,
        /// The name of the option, in words.
        option: &'static str,
    },
    /// A job of a push cannot follow the job that it names (R30). Nothing was done.
    #[error("{at}: the job \"{leader}\" cannot be followed: {why}")]
    CannotFollow {
        /// Where the error occurred.
        at: ErrorContext,
        /// The job that was to be followed.
        leader: JobId,
        /// The reason for the refusal.
        why: CannotFollow,
    },
    /// There is no connection, or the store is temporarily unable to answer (starting
    /// up, failing over, locked by another client for too long). Nothing was done.
    #[error("{at}: the store is unavailable")]
    Unavailable {
        /// Where the error occurred.
        at: ErrorContext,
        /// The error of the client library.
        source: BoxError,
    },
    /// The call was sent and its reply was lost, or part of it failed: unless it only
    /// reads, it may have taken effect.
    #[error(
        "{at}: the reply was lost or a part failed{}",
        unless_it_reads(at, ", so the call may have taken effect")
    )]
    Interrupted {
        /// Where the error occurred.
        at: ErrorContext,
        /// The error of the client library, or that of the part that failed.
        source: BoxError,
    },
    /// The call took effect, and too few replicas have confirmed it in time: if the
    /// server is lost now, the call may be lost with it. A caller that repeats the call
    /// waits for the replicas again.
    #[error(
        "{at}: it is done, and too few replicas have it, so a fail-over may lose it"
    )]
    NotReplicated {
        /// Where the error occurred.
        at: ErrorContext,
        /// How many replicas have the changes of the call, and how many are needed.
        source: BoxError,
    },
    /// The call took effect, unless it only reads, but its reply could not be read.
    #[error(
        "{at}: {}its reply cannot be read",
        unless_it_reads(at, "the call took effect, but ")
    )]
    Unreadable {
        /// Where the error occurred.
        at: ErrorContext,
        /// The cause: how the reply differs from the expected form.
        source: BoxError,
    },
    /// The store has no memory or disk space left. Nothing was done.
    #[error("{at}: the store is full")]
    Full {
        /// Where the error occurred.
        at: ErrorContext,
        /// The error of the client library.
        source: BoxError,
    },
    /// The store accepts no writes, because it is a replica. Nothing was done. If the
    /// replica is promoted, the call works again, so a worker retries it for a limited
    /// time.
    #[error("{at}: the store takes no writes")]
    ReadOnly {
        /// Where the error occurred.
        at: ErrorContext,
        /// The error of the client library.
        source: BoxError,
    },
    /// The store denies access: the password is wrong, a permission is missing, or the
    /// file must not be written. Nothing was done.
    #[error("{at}: access is denied")]
    Denied {
        /// Where the error occurred.
        at: ErrorContext,
        /// The error of the client library.
        source: BoxError,
    },
    /// This backend cannot use the store: the store is too old, is damaged or does not
    /// belong to relq, or a key has another type. Nothing was done.
    #[error("{at}: the store cannot be used")]
    Unusable {
        /// Where the error occurred.
        at: ErrorContext,
        /// The cause, as the store or its client reported it.
        source: BoxError,
    },
    /// The server is of a kind that cannot hold a relq queue: a sentinel, or a cluster
    /// node that redirects to another. Nothing was done. The caller must connect to
    /// another address.
    #[error("{at}: this server cannot hold a queue, so connect to another one")]
    WrongServer {
        /// Where the error occurred.
        at: ErrorContext,
        /// The kind of this server, and the kind that is needed.
        source: BoxError,
    },
}

impl Error {
    /// Whether the call that failed changed the store. A call that only reads did not.
    pub fn effect(&self) -> Effect {
        match self {
            _ if has_no_effect(self.at().operation) => Effect::No,
            Self::Interrupted { .. } | Self::NotReplicated { .. } => Effect::Maybe,
            Self::Unreadable { .. } => Effect::Yes,
            _ => Effect::No,
        }
    }

    /// Whether a person has to repair the cause, for example by changing permissions,
    /// by naming another file, or by promoting a replica. An unattended program should
    /// stop after it has retried for some time.
    ///
    /// If a part of a call failed, the error of that part is the source of an
    /// [`Interrupted`](Self::Interrupted) error, and decides.
    pub fn needs_help(&self) -> bool {
        match self {
            Self::Interrupted { source, .. } => {
                source.downcast_ref::<Self>().is_some_and(Self::needs_help)
            }
            Self::ReadOnly { .. } => true,
            Self::CannotFollow { .. } => false,
            _ => self.retry_advice() == RetryAdvice::Never,
        }
    }

    /// Whether the caller may make the same call again.
    pub fn retry_advice(&self) -> RetryAdvice {
        match self {
            Self::Unavailable { .. } | Self::Full { .. } | Self::ReadOnly { .. } => {
                RetryAdvice::Safe
            }
            Self::Interrupted { at, .. }
            | Self::NotReplicated { at, .. }
            | Self::Unreadable { at, .. } => {
                if at.operation.is_repeatable() {
                    RetryAdvice::Safe
                } else {
                    RetryAdvice::MayRepeat
                }
            }
            _ => RetryAdvice::Never,
        }
    }

    /// Where the error occurred.
    pub fn at(&self) -> ErrorContext {
        match self {
            Self::Invalid { at, .. }
            | Self::Unsupported { at, .. }
            | Self::CannotFollow { at, .. }
            | Self::Unavailable { at, .. }
            | Self::Interrupted { at, .. }
            | Self::NotReplicated { at, .. }
            | Self::Unreadable { at, .. }
            | Self::Full { at, .. }
            | Self::Denied { at, .. }
            | Self::ReadOnly { at, .. }
            | Self::Unusable { at, .. }
            | Self::WrongServer { at, .. } => *at,
        }
    }

    /// Returns the message of this error and those of its causes, joined by colons. A
    /// cause whose text is already part of the error above it is not repeated.
    ///
    /// ```
    /// use relq_core::{error::{ErrorContext, Operation}, Error};
    ///
    /// let at = ErrorContext { backend: "zset", operation: Operation::Push };
    /// let error = Error::Full { at, source: "OOM command not allowed".into() };
    /// assert_eq!(
    ///     error.full_message(),
    ///     "zset push: the store is full: OOM command not allowed",
    /// );
    /// ```
    pub fn full_message(&self) -> String {
        let mut message = self.to_string();
        let mut cause = std::error::Error::source(self);
        while let Some(error) = cause {
            let told = error.to_string();
            if !message.ends_with(&told) {
                message.push_str(": ");
                message.push_str(&told);
            }
            cause = error.source();
        }
        message
    }
}

/// Whether a call of this operation changes nothing. A first connection only reads the
/// queue, but it may create the store.
fn has_no_effect(operation: Operation) -> bool {
    operation.only_reads() && operation != Operation::Connect
}

/// The words that say that a call took effect; none for a call that has no effect.
fn unless_it_reads(at: &ErrorContext, words: &'static str) -> &'static str {
    if has_no_effect(at.operation) { "" } else { words }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each error of an operation with its effect, the advice, and whether it needs help.
    /// `again` is the advice if the call may have taken effect.
    fn errors(
        operation: Operation,
        again: RetryAdvice,
    ) -> Vec<(Error, Effect, RetryAdvice, bool)> {
        use RetryAdvice::{Never, Safe};
        let at = ErrorContext { backend: "mine", operation };
        let source = || -> BoxError { "as the test wants it".into() };
        let leader = JobId::new("leader").unwrap();
        let why = CannotFollow::NotDone;
        let denied = Error::Denied { at, source: source() };
        let full = Error::Full { at, source: source() };
        let in_part = |error: Error| Error::Interrupted { at, source: error.into() };
        vec![
            (Error::Invalid { at, reason: "no".into() }, Effect::No, Never, true),
            (Error::Unsupported { at, option: "this" }, Effect::No, Never, true),
            (Error::CannotFollow { at, leader, why }, Effect::No, Never, false),
            (Error::Unavailable { at, source: source() }, Effect::No, Safe, false),
            (Error::Interrupted { at, source: source() }, Effect::Maybe, again, false),
            (in_part(denied), Effect::Maybe, again, true),
            (in_part(full), Effect::Maybe, again, false),
            (
                Error::NotReplicated { at, source: source() },
                Effect::Maybe,
                again,
                false,
            ),
            (Error::Unreadable { at, source: source() }, Effect::Yes, again, false),
            (Error::Full { at, source: source() }, Effect::No, Safe, false),
            (Error::ReadOnly { at, source: source() }, Effect::No, Safe, true),
            (Error::Denied { at, source: source() }, Effect::No, Never, true),
            (Error::Unusable { at, source: source() }, Effect::No, Never, true),
            (Error::WrongServer { at, source: source() }, Effect::No, Never, true),
        ]
    }

    /// R21: a caller acts by what an error says of its effect, of a repetition, and of the
    /// help that it needs. A push whose jobs may be stored is not repeated without care (R4).
    #[test]
    fn each_error_says_its_effect_and_what_to_do() {
        use RetryAdvice::{MayRepeat, Safe};
        for (operation, again) in [
            (Operation::Push, MayRepeat),
            (Operation::AddPieces, MayRepeat),
            (Operation::Claim, Safe),
            (Operation::Settle, Safe),
            (Operation::PushTick, Safe),
            (Operation::Connect, Safe),
        ] {
            for (error, effect, advice, needs_help) in errors(operation, again) {
                let found = (error.effect(), error.retry_advice(), error.needs_help());
                assert_eq!(found, (effect, advice, needs_help), "{error:?}");
                assert_eq!(error.at().operation, operation, "{error:?}");
            }
        }
    }

    /// R21: a call that only reads changes nothing, whatever became of its reply. A caller
    /// that believed otherwise would look for an effect before it tries again.
    #[test]
    fn a_call_that_only_reads_has_no_effect() {
        use RetryAdvice::Safe;
        for operation in [Operation::Stats, Operation::WaitResult, Operation::Peek] {
            for (error, _, advice, needs_help) in errors(operation, Safe) {
                let found = (error.effect(), error.retry_advice(), error.needs_help());
                assert_eq!(found, (Effect::No, advice, needs_help), "{error:?}");
                let message = error.to_string();
                let tells_of_effect = ["took effect", "taken effect"]
                    .map(|words| message.contains(words));
                assert_eq!(tells_of_effect, [false; 2], "{message}");
            }
        }
    }

    #[test]
    fn a_lost_reply_to_a_change_is_told_with_its_effect() {
        let at = ErrorContext { backend: "mine", operation: Operation::Push };
        let source = || -> BoxError { "as the test wants it".into() };

        let lost = Error::Interrupted { at, source: source() }.to_string();
        let unreadable = Error::Unreadable { at, source: source() }.to_string();

        let expected = "mine push: the reply was lost or a part failed, so the call may \
                        have taken effect";
        assert_eq!(lost, expected);
        let expected = "mine push: the call took effect, but its reply cannot be read";
        assert_eq!(unreadable, expected);
    }
}
