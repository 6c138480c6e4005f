//! One error for all backends. Each variant is a case that the caller can handle.

use std::fmt;

/// The cause of an error, of any type of the store's client library.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The operation that a backend was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// Opening the queue, or another handle of it.
    Connect,
    /// [`ReliableQueue::push`](crate::ReliableQueue::push).
    Push,
    /// [`ReliableQueue::claim`](crate::ReliableQueue::claim).
    Claim,
    /// [`ReliableQueue::settle`](crate::ReliableQueue::settle).
    Settle,
    /// [`ReliableQueue::extend`](crate::ReliableQueue::extend).
    Extend,
    /// [`ReliableQueue::release_worker`](crate::ReliableQueue::release_worker).
    ReleaseWorker,
    /// [`ReliableQueue::recover`](crate::ReliableQueue::recover).
    Recover,
    /// [`Operator::stats`](crate::Operator::stats).
    Stats,
    /// [`Operator::peek`](crate::Operator::peek).
    Peek,
    /// [`Operator::redrive`](crate::Operator::redrive).
    Redrive,
    /// [`Operator::purge`](crate::Operator::purge) and
    /// [`Operator::purge_dead`](crate::Operator::purge_dead).
    Purge,
    /// [`Operator::cancel`](crate::Operator::cancel).
    Cancel,
    /// [`Operator::pause`](crate::Operator::pause).
    Pause,
    /// [`Operator::resume`](crate::Operator::resume).
    Resume,
    /// [`Operator::audit`](crate::Operator::audit).
    Audit,
    /// [`BatchQueue::create`](crate::BatchQueue::create).
    CreateBatch,
    /// [`BatchQueue::add`](crate::BatchQueue::add).
    AddPieces,
    /// [`BatchQueue::seal`](crate::BatchQueue::seal).
    SealBatch,
    /// [`BatchQueue::batch`](crate::BatchQueue::batch) and
    /// [`BatchQueue::list_batches`](crate::BatchQueue::list_batches).
    ReadBatch,
    /// [`BatchQueue::cancel_batch`](crate::BatchQueue::cancel_batch).
    CancelBatch,
    /// [`BatchQueue::alter`](crate::BatchQueue::alter).
    AlterBatch,
    /// [`BatchQueue::wait_batch`](crate::BatchQueue::wait_batch).
    WaitBatch,
}

impl Operation {
    /// Whether a second call has the same effect as one call, even if the first took
    /// effect.
    ///
    /// All operations but `Push` and `AddPieces` are repeatable: a second settlement of
    /// a receipt returns `LeaseLost`, and the jobs of a claim whose reply was lost come
    /// back when their lease expires.
    pub fn is_repeatable(self) -> bool {
        !matches!(self, Self::Push | Self::AddPieces)
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Connect => "connect",
            Self::Push => "push",
            Self::Claim => "claim",
            Self::Settle => "settle",
            Self::Extend => "extend",
            Self::ReleaseWorker => "release worker",
            Self::Recover => "recover",
            Self::Stats => "stats",
            Self::Peek => "peek",
            Self::Redrive => "redrive",
            Self::Purge => "purge",
            Self::Cancel => "cancel",
            Self::Pause => "pause",
            Self::Resume => "resume",
            Self::Audit => "audit",
            Self::CreateBatch => "create batch",
            Self::AddPieces => "add pieces",
            Self::SealBatch => "seal batch",
            Self::ReadBatch => "read batch",
            Self::CancelBatch => "cancel batch",
            Self::AlterBatch => "alter batch",
            Self::WaitBatch => "wait for batch",
        }
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

/// Where an error occurred: the backend and the operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorContext {
    /// The backend's name, as in its URL.
    pub backend: &'static str,
    /// The operation that failed.
    pub operation: Operation,
}

impl fmt::Display for ErrorContext {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.backend, self.operation)
    }
}

/// Whether the call that failed changed the store.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Effect {
    /// The call certainly changed nothing.
    No,
    /// Unknown: the call was sent, and its reply was lost.
    Maybe,
    /// The call certainly took effect, but its reply could not be used.
    Yes,
}

/// Whether the same call may be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAdvice {
    /// The call would fail again until something is changed.
    Never,
    /// A repeated call has the same effect as one call.
    Safe,
    /// The call may take effect a second time. A push is still safe when it carries a
    /// [`PushToken`](crate::PushToken) or its jobs carry client-made ids (R4).
    MayRepeat,
}

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
        /// The problem with the request.
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
    /// There is no connection, or the store is temporarily unable to respond (starting
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
        /// The problem with the reply.
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
        /// The problem with the store.
        source: BoxError,
    },
    /// The server is of a kind that cannot hold a relq queue: a sentinel, or a cluster
    /// node that redirects to another. Nothing was done, and only another address
    /// helps.
    #[error("{at}: the server is the wrong one")]
    WrongServer {
        /// Where the error occurred.
        at: ErrorContext,
        /// The kind of the server, and the kind that is needed.
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
    /// use relq_core::{ErrorContext, Error, Operation};
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
