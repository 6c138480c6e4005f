//! The types in an [`Error`](crate::Error): where it occurred, its effect, and whether
//! the call may be made again.

use std::fmt;

pub use crate::name::InvalidName;

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
    /// [`BatchQueue::create`](crate::batch::BatchQueue::create).
    CreateBatch,
    /// [`BatchQueue::add`](crate::batch::BatchQueue::add).
    AddPieces,
    /// [`BatchQueue::seal`](crate::batch::BatchQueue::seal).
    SealBatch,
    /// [`BatchQueue::batch`](crate::batch::BatchQueue::batch) and
    /// [`BatchQueue::list_batches`](crate::batch::BatchQueue::list_batches).
    ReadBatch,
    /// [`BatchQueue::cancel_batch`](crate::batch::BatchQueue::cancel_batch).
    CancelBatch,
    /// [`BatchQueue::alter`](crate::batch::BatchQueue::alter).
    AlterBatch,
    /// [`BatchQueue::wait_batch`](crate::batch::BatchQueue::wait_batch).
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
