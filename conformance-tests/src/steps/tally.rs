//! What was counted over all runs.

use std::collections::{BTreeMap, BTreeSet};

/// Steps, faults and failures of a backend.
#[derive(Debug, Clone, Default)]
pub struct Tally {
    /// Runs in which a fault fired.
    pub runs: u64,
    /// Faults that fired.
    pub faults_fired: u64,
    /// Steps of all acts, unstruck.
    pub steps: u64,
    /// Which faults fired at which command or script.
    pub coverage: BTreeMap<String, BTreeSet<&'static str>>,
    /// What went wrong, each with the words that repeat it.
    pub failures: Vec<String>,
}

impl Tally {
    /// Adds what another tally counted.
    pub fn add(&mut self, other: Self) {
        self.runs += other.runs;
        self.faults_fired += other.faults_fired;
        self.steps += other.steps;
        for (label, faults) in other.coverage {
            self.coverage.entry(label).or_default().extend(faults);
        }
        self.failures.extend(other.failures);
    }
}
