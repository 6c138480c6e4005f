//! The counts of the runs with faults.

use std::collections::{BTreeMap, BTreeSet};

use crate::Need;

/// The steps, the faults and the failures of a backend's runs.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// The number of runs in which a fault fired.
    pub runs: u64,
    /// The number of faults that fired.
    pub faults_fired: u64,
    /// The number of steps of all acts in runs without faults.
    pub steps: u64,
    /// The names of the faults that fired, by the command or script that they hit.
    pub coverage: BTreeMap<String, BTreeSet<&'static str>>,
    /// The acts that were not run, each with the option that it needs and that the
    /// backend does not support.
    pub unsupported: Vec<(&'static str, Need)>,
    /// The failures, each with the act, the step and the fault that repeat it.
    pub failures: Vec<String>,
}

impl Tally {
    /// The tally of an act that was not run, because the backend does not meet its
    /// need.
    pub(crate) fn unsupported(act: &'static str, need: Need) -> Self {
        Self { unsupported: vec![(act, need)], ..Self::default() }
    }

    /// COVERAGE: faults fired, and each command was hit both before and after it ran.
    pub fn is_covered(&self) -> bool {
        !self.coverage.is_empty() && self.coverage.values().all(is_hit_both_ways)
    }

    /// Whether faults hit the command of that label both before and after it ran.
    pub(crate) fn covers(&self, label: &str) -> bool {
        self.coverage.get(label).is_some_and(is_hit_both_ways)
    }

    /// Panics if there are failures, with each of them on lines of its own.
    #[track_caller]
    pub(super) fn expect_no_failure(&self) {
        let failures = self.failures.join("\n\n");
        let count = self.failures.len();
        assert!(count == 0, "{count} runs broke a rule:\n{failures}");
    }

    /// Adds the counts of another tally.
    pub fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.faults_fired += other.faults_fired;
        self.steps += other.steps;
        for (label, faults) in other.coverage {
            self.coverage.entry(label).or_default().extend(faults);
        }
        self.unsupported.extend(other.unsupported);
        self.failures.extend(other.failures);
    }
}

fn is_hit_both_ways(faults: &BTreeSet<&str>) -> bool {
    faults.contains("before") && faults.contains("after")
}
