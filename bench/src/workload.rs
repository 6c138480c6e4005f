//! The workloads that are measured.

use std::num::NonZeroU32;

/// A workload, by its name in the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Workload {
    /// Push one job at a time.
    PushOne,
    /// Drain with one handler at a time.
    DrainOne,
    /// Push from 64 tasks, one job a call.
    PushTasks,
    /// Drain with 64 handlers at once.
    DrainTasks,
    /// Push 100 jobs a call.
    PushBatches,
    /// Drain with 512 handlers at once.
    DrainBatches,
    /// Measure the time from the push to the start of the handler of an idle worker.
    HandOver,
}

/// Tasks that push at once, and handlers of `DrainTasks`.
pub(crate) const TASKS: NonZeroU32 = NonZeroU32::new(64).expect("not zero");

/// Jobs of a call of `PushBatches`.
pub(crate) const BATCH: usize = 100;

/// Handlers of `DrainBatches`.
pub(crate) const CROWD: NonZeroU32 = NonZeroU32::new(512).expect("not zero");

impl Workload {
    /// The workloads in their order: each draining workload takes the jobs that the one
    /// before it pushed.
    pub(crate) const ALL: [Self; 7] = [
        Self::PushOne,
        Self::DrainOne,
        Self::PushTasks,
        Self::DrainTasks,
        Self::PushBatches,
        Self::DrainBatches,
        Self::HandOver,
    ];

    /// The workload's short name.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::PushOne => "W1",
            Self::PushTasks => "W2",
            Self::PushBatches => "W2b",
            Self::DrainOne => "W3",
            Self::DrainTasks => "W4",
            Self::DrainBatches => "W4b",
            Self::HandOver => "W5",
        }
    }

    /// A short description of the workload.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Self::PushOne => "push one",
            Self::PushTasks => "push, 64 tasks",
            Self::PushBatches => "push 100 a call",
            Self::DrainOne => "drain, 1 at once",
            Self::DrainTasks => "drain, 64",
            Self::DrainBatches => "drain, 512",
            Self::HandOver => "hand-over",
        }
    }
}
