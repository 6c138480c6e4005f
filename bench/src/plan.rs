//! How many jobs each measurement uses, and how long it may take.

use std::time::Duration;

/// How many jobs each measurement of one run uses, and how long it may take.
#[derive(Debug, Clone)]
pub(crate) struct Plan {
    /// How often each workload is repeated. The median is reported.
    pub(crate) repetitions: usize,
    /// The number of jobs in the workloads that handle one job at a time.
    pub(crate) single: u64,
    /// The number of jobs in the workloads that use many tasks or large batches.
    pub(crate) many: u64,
    /// How many jobs are pushed to an idle worker to time their delivery.
    pub(crate) handed: u64,
    /// The size of a payload in bytes.
    pub(crate) payload: usize,
    /// The numbers of waiting jobs at which the cost of one more job is measured.
    pub(crate) waiting: Vec<u64>,
    /// The numbers of leased jobs at which the cost of one more job is measured.
    pub(crate) leased: Vec<u64>,
    /// How long the commands of an idle worker are counted.
    pub(crate) idle: Duration,
    /// The time limit of a workload. Jobs that are done before the limit are counted.
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

    /// A plan that takes a few minutes for all backends together.
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
