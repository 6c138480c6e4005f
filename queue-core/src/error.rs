//! The types in an [`Error`](crate::Error): where it occurred, its effect, and whether
//! the call may be made again.

use std::fmt;

pub use crate::name::InvalidName;

/// The cause of an error, such as an error of the store's client library. It may have
/// any type.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The operation that a backend was asked to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Operation {
    /// The first connection to a queue, or another connection to it.
    Connect,
    /// A call of [`ReliableQueue::push`](crate::ReliableQueue::push).
    Push,
    /// A call of [`ReliableQueue::claim`](crate::ReliableQueue::claim).
    Claim,
    /// A call of [`ReliableQueue::settle`](crate::ReliableQueue::settle).
    Settle,
    /// A call of [`ReliableQueue::extend`](crate::ReliableQueue::extend).
    Extend,
    /// A call of
    /// [`ReliableQueue::release_worker`](crate::ReliableQueue::release_worker).
    ReleaseWorker,
    /// A call of [`ReliableQueue::recover`](crate::ReliableQueue::recover).
    Recover,
    /// A call of [`Operator::stats`](crate::Operator::stats).
    Stats,
    /// A call of [`Operator::peek`](crate::Operator::peek).
    Peek,
    /// A call of [`Operator::redrive`](crate::Operator::redrive).
    Redrive,
    /// A call of [`Operator::purge`](crate::Operator::purge) or
    /// [`Operator::purge_dead`](crate::Operator::purge_dead).
    Purge,
    /// A call of [`Operator::cancel`](crate::Operator::cancel).
    Cancel,
    /// A call of [`Operator::pause`](crate::Operator::pause).
    Pause,
    /// A call of [`Operator::resume`](crate::Operator::resume).
    Resume,
    /// A call of [`Operator::audit`](crate::Operator::audit).
    Audit,
    /// A call of [`BatchQueue::create`](crate::batch::BatchQueue::create).
    CreateBatch,
    /// A call of [`BatchQueue::add`](crate::batch::BatchQueue::add).
    AddPieces,
    /// A call of [`BatchQueue::seal`](crate::batch::BatchQueue::seal).
    SealBatch,
    /// A call of [`BatchQueue::batch`](crate::batch::BatchQueue::batch) or
    /// [`BatchQueue::list_batches`](crate::batch::BatchQueue::list_batches).
    ReadBatch,
    /// A call of [`BatchQueue::cancel_batch`](crate::batch::BatchQueue::cancel_batch).
    CancelBatch,
    /// A call of [`BatchQueue::alter`](crate::batch::BatchQueue::alter).
    AlterBatch,
    /// A call of [`BatchQueue::wait_batch`](crate::batch::BatchQueue::wait_batch).
    WaitBatch,
    /// A call of
    /// [`ScheduleQueue::put_schedule`](crate::schedule::ScheduleQueue::put_schedule).
    PutSchedule,
    /// A call of
    /// [`ScheduleQueue::remove_schedule`](crate::schedule::ScheduleQueue::remove_schedule).
    RemoveSchedule,
    /// A call of
    /// [`ScheduleQueue::schedules`](crate::schedule::ScheduleQueue::schedules).
    ReadSchedules,
    /// A call of
    /// [`ScheduleQueue::push_tick`](crate::schedule::ScheduleQueue::push_tick).
    PushTick,
    /// A call of
    /// [`ResultQueue::report_progress`](crate::results::ResultQueue::report_progress).
    ReportProgress,
    /// A call of
    /// [`ResultQueue::read_results`](crate::results::ResultQueue::read_results).
    ReadResults,
    /// A call of
    /// [`ResultQueue::wait_result`](crate::results::ResultQueue::wait_result).
    WaitResult,
    /// A call of [`InspectQueue::job`](crate::operator::InspectQueue::job).
    ReadJob,
    /// A call of [`InspectQueue::run_now`](crate::operator::InspectQueue::run_now).
    RunNow,
    /// A call of [`ReliableQueue::report_worker`](crate::ReliableQueue::report_worker).
    ReportWorker,
    /// A call of [`InspectQueue::workers`](crate::operator::InspectQueue::workers).
    ReadWorkers,
    /// A call of [`RestoreQueue::restore`](crate::operator::RestoreQueue::restore).
    Restore,
}

impl Operation {
    /// Whether the operation can be repeated: a second call has the same effect as one
    /// call, even if the first took effect.
    ///
    /// All operations but `Push` and `AddPieces` are repeatable: a second settlement of
    /// a receipt returns `LeaseLost`, and the jobs of a claim whose reply was lost come
    /// back when their lease expires.
    pub fn is_repeatable(self) -> bool {
        !matches!(self, Self::Push | Self::AddPieces)
    }

    /// Whether the operation only reads: it changes nothing in the store.
    pub fn only_reads(self) -> bool {
        match self {
            Self::Connect
            | Self::Stats
            | Self::Peek
            | Self::Audit
            | Self::ReadBatch
            | Self::WaitBatch
            | Self::ReadSchedules
            | Self::ReadResults
            | Self::WaitResult
            | Self::ReadJob
            | Self::ReadWorkers => true,
            Self::Push
            | Self::Claim
            | Self::Settle
            | Self::Extend
            | Self::ReleaseWorker
            | Self::Recover
            | Self::Redrive
            | Self::Purge
            | Self::Cancel
            | Self::Pause
            | Self::Resume
            | Self::CreateBatch
            | Self::AddPieces
            | Self::SealBatch
            | Self::CancelBatch
            | Self::AlterBatch
            | Self::PutSchedule
            | Self::RemoveSchedule
            | Self::PushTick
            | Self::ReportProgress
            | Self::RunNow
            | Self::ReportWorker
            | Self::Restore => false,
        }
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
            Self::PutSchedule => "put schedule",
            Self::RemoveSchedule => "remove schedule",
            Self::ReadSchedules => "read schedules",
            Self::PushTick => "push tick",
            Self::ReportProgress => "report progress",
            Self::ReadResults => "read results",
            Self::WaitResult => "wait for result",
            Self::ReadJob => "read job",
            Self::RunNow => "run now",
            Self::ReportWorker => "report worker",
            Self::ReadWorkers => "read workers",
            Self::Restore => "restore",
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
    /// The name of the backend, as it stands in a queue's URL.
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
    /// No: the call would fail again until its arguments or the store are changed.
    Never,
    /// Yes: a repeated call has the same effect as one call.
    Safe,
    /// With care: the call may take effect a second time. A push is still safe when it
    /// carries a [`PushToken`](crate::PushToken) or its jobs carry client-made ids
    /// (R4).
    MayRepeat,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::Operation::{self, *};

    const READS: [Operation; 11] = [
        Connect,
        Stats,
        Peek,
        Audit,
        ReadBatch,
        WaitBatch,
        ReadSchedules,
        ReadResults,
        WaitResult,
        ReadJob,
        ReadWorkers,
    ];

    /// The operations that change the store, and that can be repeated.
    const CHANGES: [Operation; 21] = [
        Claim,
        Settle,
        Extend,
        ReleaseWorker,
        Recover,
        Redrive,
        Purge,
        Cancel,
        Pause,
        Resume,
        CreateBatch,
        SealBatch,
        CancelBatch,
        AlterBatch,
        PutSchedule,
        RemoveSchedule,
        PushTick,
        ReportProgress,
        RunNow,
        ReportWorker,
        Restore,
    ];

    /// The operations that store jobs a second time if they are repeated (R4).
    const PUSHES: [Operation; 2] = [Push, AddPieces];

    fn assert_all(operations: &[Operation], only_reads: bool, is_repeatable: bool) {
        for operation in operations {
            let found = (operation.only_reads(), operation.is_repeatable());
            let expected = (only_reads, is_repeatable);
            assert_eq!(found, expected, "{operation} reads, and can be repeated");
        }
    }

    /// R21: a caller repeats what can be repeated. R25: a client marks a queue before an
    /// operation that does not only read.
    #[test]
    fn each_operation_says_whether_it_reads_and_can_be_repeated() {
        assert_all(&READS, true, true);
        assert_all(&CHANGES, false, true);
        assert_all(&PUSHES, false, false);
    }

    /// The words of an operation are a label of the metrics, so each has its own.
    #[test]
    fn no_two_operations_have_the_same_words() {
        let all = READS.iter().chain(&CHANGES).chain(&PUSHES);
        let words: BTreeSet<_> = all.clone().map(ToString::to_string).collect();

        assert_eq!(words.len(), all.count(), "{words:?}");
    }
}
