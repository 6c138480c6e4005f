//! One error for all backends. A variant is what the caller can act on.

use std::fmt;

/// The cause of an error, of whatever type the store's client library has.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a backend was asked to do.
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
    /// Whether doing it twice is as good as once, whatever became of the first.
    ///
    /// All but `Push` and `AddPieces` are: a second settlement of a receipt is
    /// answered `LeaseLost`, and what a lost claim leased comes back with its lease.
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

/// Where an error arose: the backend and what it was doing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ErrorContext {
    /// The backend's name, as in its URL.
    pub backend: &'static str,
    /// What it was asked to do.
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
    /// Surely not: nothing was changed.
    No,
    /// Unknown: it was sent, and the answer was lost.
    Maybe,
    /// Surely: it was done, and only its answer could not be used.
    Yes,
}

/// Whether the same call may be made again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RetryAdvice {
    /// It would fail again until something is changed.
    Never,
    /// Again is as good as once.
    Safe,
    /// It may be done a second time. A push is safe all the same when it carries a
    /// [`PushToken`](crate::PushToken) or its jobs carry ids of the client's (R4).
    MayRepeat,
}

/// Why a queue could not do what it was asked (R21).
///
/// Nothing ready, a duplicate and a lost lease are outcomes, not errors.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The request breaks a stated limit or makes no sense. Nothing was done.
    #[error("{at}: {reason}")]
    Invalid {
        /// Where it arose.
        at: ErrorContext,
        /// What is wrong with the request.
        reason: String,
    },
    /// The request uses an option that the backend does not support. Nothing was done.
    #[error("{at}: {option} is not an option of this backend")]
    Unsupported {
        /// Where it arose.
        at: ErrorContext,
        /// The option, in words.
        option: &'static str,
    },
    /// No connection, or the store answered "not now" (starting up, failing over,
    /// locked by another for too long). Nothing was done.
    #[error("{at}: the store is unavailable")]
    Unavailable {
        /// Where it arose.
        at: ErrorContext,
        /// What the client library said.
        source: BoxError,
    },
    /// The call was sent and its answer was lost, or part of it failed: it may have
    /// happened.
    #[error("{at}: the answer was lost, so it may have happened")]
    Interrupted {
        /// Where it arose.
        at: ErrorContext,
        /// What the client library said.
        source: BoxError,
    },
    /// The call was done, and its answer could not be read.
    #[error("{at}: it was done, but the answer cannot be read")]
    Unreadable {
        /// Where it arose.
        at: ErrorContext,
        /// What is wrong with the answer.
        source: BoxError,
    },
    /// The store has no memory or disk left. Nothing was done.
    #[error("{at}: the store is full")]
    Full {
        /// Where it arose.
        at: ErrorContext,
        /// What the client library said.
        source: BoxError,
    },
    /// The store takes no writes: a replica that was not promoted. Nothing was done. A
    /// promotion mends it, so it may be tried again, but not for ever.
    #[error("{at}: the store takes no writes")]
    ReadOnly {
        /// Where it arose.
        at: ErrorContext,
        /// What the client library said.
        source: BoxError,
    },
    /// Wrong password, missing permission, a file that may not be written. Nothing
    /// was done.
    #[error("{at}: access is denied")]
    Denied {
        /// Where it arose.
        at: ErrorContext,
        /// What the client library said.
        source: BoxError,
    },
    /// The store is not one that this backend can work on: too old, damaged, not
    /// relq's, or a key of another type in the way. Nothing was done.
    #[error("{at}: the store cannot be used")]
    Unusable {
        /// Where it arose.
        at: ErrorContext,
        /// What is wrong with the store.
        source: BoxError,
    },
    /// The server is of a kind that keeps no queue of relq's: a sentinel, or a cluster
    /// node that leads elsewhere. Nothing was done, and only another address mends it.
    #[error("{at}: the server is the wrong one")]
    WrongServer {
        /// Where it arose.
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

    /// Whether only somebody's help mends it: permissions, another file, a promotion. A
    /// program that runs by itself stops after it has tried for a while.
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

    /// Where it arose.
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

    /// The message and those of all its causes, joined by colons. A cause
    /// that was told already, as part of the error that it caused, is not told again.
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
