//! What is measured.

use std::num::NonZeroU32;

/// A workload, by the name that the tables have for it.
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
    /// From the push to the start of the handler of an idle worker.
    HandOver,
}

/// Tasks that push at once, and handlers of `DrainTasks`.
pub(crate) const TASKS: NonZeroU32 = NonZeroU32::new(64).expect("not zero");

/// Jobs of a call of `PushBatches`.
pub(crate) const BATCH: usize = 100;

/// Handlers of `DrainBatches`.
pub(crate) const CROWD: NonZeroU32 = NonZeroU32::new(512).expect("not zero");

impl Workload {
    /// In the order in which they run: what one pushes, the next drains.
    pub(crate) const ALL: [Self; 7] = [
        Self::PushOne,
        Self::DrainOne,
        Self::PushTasks,
        Self::DrainTasks,
        Self::PushBatches,
        Self::DrainBatches,
        Self::HandOver,
    ];

    /// Its short name.
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

    /// What it is, in few words.
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
