//! How much of everything is measured.

use std::time::Duration;

/// The sizes of one run.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    /// Repetitions; the median counts.
    pub(super) repetitions: usize,
    /// Jobs of the workloads that go one at a time.
    pub(super) single: u64,
    /// Jobs of the workloads with many tasks or large batches.
    pub(super) many: u64,
    /// Jobs whose way to an idle worker is timed.
    pub(super) handed: u64,
    /// Bytes of a payload.
    pub(super) payload: usize,
    /// How many jobs wait while the cost of one more is measured.
    pub(super) waiting: Vec<u64>,
    /// How many are leased meanwhile.
    pub(super) leased: Vec<u64>,
    /// How long an idle worker is watched.
    pub(super) idle: Duration,
    /// No workload takes longer: what was done by then is what counts.
    pub(super) patience: Duration,
}

impl Plan {
    pub(super) fn full(jobs: u64, payload: usize) -> Self {
        Self {
            repetitions: 3,
            single: jobs.div_ceil(10),
            many: jobs,
            handed: 1000,
            payload,
            waiting: vec![1_000, 10_000, 100_000, 1_000_000],
            leased: vec![10, 1_000, 10_000, 100_000],
            idle: Duration::from_secs(5),
            patience: Duration::from_secs(20),
        }
    }

    /// A few minutes for all backends together.
    pub(super) fn quick(payload: usize) -> Self {
        Self {
            repetitions: 3,
            single: 1_500,
            many: 15_000,
            handed: 200,
            payload,
            waiting: vec![1_000, 10_000, 100_000],
            leased: vec![10, 1_000, 10_000],
            idle: Duration::from_secs(2),
            patience: Duration::from_secs(4),
        }
    }
}
