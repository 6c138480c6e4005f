//! The workloads that each contender runs.

use std::num::NonZeroU32;

/// The workloads, named as in the tables.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Workload {
    /// Push one job at a time.
    PushOne,
    /// Handle all pushed jobs with one handler at a time.
    DrainOne,
    /// Handle as many jobs with one handler at a time, which prefetches 100. The jobs are
    /// pushed before the time begins.
    DrainAhead,
    /// Push from 64 tasks at once. Each call pushes one job.
    PushTasks,
    /// Handle all pushed jobs with 64 handlers at once.
    DrainTasks,
    /// Push from one task. Each call pushes 100 jobs.
    PushBatches,
    /// Handle all pushed jobs with 512 handlers at once.
    DrainBatches,
    /// Push single jobs to an idle worker, and measure the time until the handler
    /// starts.
    HandOver,
}

/// How many tasks push at once, and how many handlers `DrainTasks` has.
pub(crate) const TASKS: NonZeroU32 = NonZeroU32::new(64).expect("not zero");

/// How many jobs one call of `PushBatches` pushes.
pub(crate) const BATCH: usize = 100;

/// How many jobs `DrainAhead` prefetches.
pub(crate) const AHEAD: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

/// How many handlers `DrainBatches` has.
pub(crate) const CROWD: NonZeroU32 = NonZeroU32::new(512).expect("not zero");

impl Workload {
    /// The workloads in their order: each draining workload takes the jobs that the one
    /// before it pushed.
    pub(crate) const ALL: [Self; 8] = [
        Self::PushOne,
        Self::DrainOne,
        Self::DrainAhead,
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
            Self::DrainAhead => "W3b",
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
            Self::DrainAhead => "drain, 1, ahead",
            Self::DrainTasks => "drain, 64",
            Self::DrainBatches => "drain, 512",
            Self::HandOver => "hand-over",
        }
    }
}
