//! One error for all backends. Each variant is a case that the caller can handle.

use crate::error::{BoxError, Effect, ErrorContext, RetryAdvice};

/// Why a call failed (R21).
///
/// Nothing ready, a duplicate and a lost lease are outcomes, not errors.
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
        /// The option, in words.
        option: &'static str,
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
    /// The call was sent and its reply was lost, or part of it failed: it may have
    /// taken effect.
    #[error("{at}: the answer was lost, so it may have happened")]
    Interrupted {
        /// Where the error occurred.
        at: ErrorContext,
        /// The error of the client library.
        source: BoxError,
    },
    /// The call took effect, but its reply could not be read.
    #[error("{at}: it was done, but the answer cannot be read")]
    Unreadable {
        /// Where the error occurred.
        at: ErrorContext,
        /// The cause: how the reply differs from the expected form.
        source: BoxError,
    },
    /// The store has no memory or disk left. Nothing was done.
    #[error("{at}: the store is full")]
    Full {
        /// Where the error occurred.
        at: ErrorContext,
        /// The error of the client library.
        source: BoxError,
    },
    /// The store takes no writes: it is a replica that was not promoted. Nothing was
    /// done. A promotion repairs this, so a worker retries the call for a limited time.
    #[error("{at}: the store takes no writes")]
    ReadOnly {
        /// Where the error occurred.
        at: ErrorContext,
        /// The error of the client library.
        source: BoxError,
    },
    /// Wrong password, missing permission, a file that may not be written. Nothing
    /// was done.
    #[error("{at}: access is denied")]
    Denied {
        /// Where the error occurred.
        at: ErrorContext,
        /// The error of the client library.
        source: BoxError,
    },
    /// This backend cannot use the store: it is too old, damaged or does not belong to
    /// relq, or a key has another type. Nothing was done.
    #[error("{at}: the store cannot be used")]
    Unusable {
        /// Where the error occurred.
        at: ErrorContext,
        /// The cause, as the store or its client reported it.
        source: BoxError,
    },
    /// The server is of a kind that cannot hold a relq queue: a sentinel, or a cluster
    /// node that redirects to another. Nothing was done, and only another address
    /// helps.
    #[error("{at}: the server is the wrong one")]
    WrongServer {
        /// Where the error occurred.
        at: ErrorContext,
        /// Which kind of server it is, and which one is needed.
        source: BoxError,
    },
}

impl Error {
    /// Whether the call changed the store.
    pub fn effect(&self) -> Effect {
        match self {
            Self::Interrupted { .. } => Effect::Maybe,
            Self::Unreadable { .. } => Effect::Yes,
            _ => Effect::No,
        }
    }

    /// Whether only a person can repair the cause: permissions, another file, a
    /// promotion. An unattended program should stop after it has retried for some time.
    pub fn needs_help(&self) -> bool {
        matches!(self, Self::ReadOnly { .. })
            || self.retry_advice() == RetryAdvice::Never
    }

    /// Whether the same call may be made again.
    pub fn retry_advice(&self) -> RetryAdvice {
        match self {
            Self::Unavailable { .. } | Self::Full { .. } | Self::ReadOnly { .. } => {
                RetryAdvice::Safe
            }
            Self::Interrupted { at, .. } | Self::Unreadable { at, .. } => {
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
            | Self::Unavailable { at, .. }
            | Self::Interrupted { at, .. }
            | Self::Unreadable { at, .. }
            | Self::Full { at, .. }
            | Self::Denied { at, .. }
            | Self::ReadOnly { at, .. }
            | Self::Unusable { at, .. }
            | Self::WrongServer { at, .. } => *at,
        }
    }

    /// The message and the messages of all its causes, joined by colons. A cause whose
    /// text is already part of the error above it is not repeated.
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
