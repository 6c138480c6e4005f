//! The sizes of the measurements.

use std::time::Duration;

/// The sizes of one run.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// Repetitions; the median counts.
    pub(crate) repetitions: usize,
    /// Jobs of the workloads that go one at a time.
    pub(crate) single: u64,
    /// Jobs of the workloads with many tasks or large batches.
    pub(crate) many: u64,
    /// Jobs whose delivery to an idle worker is timed.
    pub(crate) handed: u64,
    /// Bytes of a payload.
    pub(crate) payload: usize,
    /// How many jobs wait while the cost of one more is measured.
    pub(crate) waiting: Vec<u64>,
    /// How many jobs are leased while the cost of one more is measured.
    pub(crate) leased: Vec<u64>,
    /// How long an idle worker is observed.
    pub(crate) idle: Duration,
    /// The time limit of a workload: the jobs done by then count.
    pub(crate) patience: Duration,
}

impl Plan {
    pub(crate) fn full(jobs: u64, payload: usize) -> Self {
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
    pub(crate) fn quick(payload: usize) -> Self {
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
