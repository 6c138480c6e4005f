//! The counts of all runs.

use std::collections::{BTreeMap, BTreeSet};

use crate::Need;

/// Steps, faults and failures of a backend.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Runs in which a fault fired.
    pub runs: u64,
    /// Faults that fired.
    pub faults_fired: u64,
    /// Steps of all acts, without faults.
    pub steps: u64,
    /// The faults that fired at each command or script.
    pub coverage: BTreeMap<String, BTreeSet<&'static str>>,
    /// The acts without faults, and the option that the backend does not support for
    /// each.
    pub unsupported: Vec<(&'static str, Need)>,
    /// The failures, each with the words that repeat it.
    pub failures: Vec<String>,
}

impl Tally {
    /// The tally of an act whose need is not met.
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
