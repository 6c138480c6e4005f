//! The results of the whole suite for one backend.
//!
//! [`judge`] runs every case that applies to a kind of store and the
//! [model](crate::spec). It runs every act of [depth 1](crate::sweep) for a backend on
//! Redis, and for an embedded one that declares how its [processes](crate::sweep::processes)
//! are killed, and every [scene](crate::explore) for a backend on Redis. It returns a
//! result for each.

mod grid;
mod judge;
mod markdown;
mod table;

use std::collections::BTreeSet;

pub use judge::{Chosen, expected, judge};

use crate::spec::Summary;

/// The result of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseResult {
    /// The promise was kept.
    Passed,
    /// The backend does not support the option that the case needs, and refuses it
    /// cleanly.
    Unsupported,
    /// The promise was broken; the message says how.
    Failed(String),
}

/// The result of one case or act.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// `topic::name`.
    pub id: String,
    /// The rules that the case judges.
    pub rules: &'static [&'static str],
    /// The result of the case.
    pub result: CaseResult,
    /// Steps of the act.
    pub steps: u64,
    /// Faults that fired at these steps.
    pub faults_fired: u64,
    /// The summary of the model's runs, if this is the model's result.
    pub played: Option<Summary>,
}

impl Judged {
    /// The part of the id before the colons.
    pub fn topic(&self) -> &str {
        self.id.split_once("::").map_or(&self.id, |(topic, _)| topic)
    }
}

/// All results of one backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The backend's name.
    pub backend: &'static str,
    /// All results, in the order of the suite.
    pub cases: Vec<Judged>,
}

/// Counts of a report, or of one topic of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// Cases and acts that were judged.
    pub cases: usize,
    /// Promises kept.
    pub passed: usize,
    /// Promises broken.
    pub failed: usize,
    /// Options that are not supported, and that the backend refuses.
    pub unsupported: usize,
    /// Steps of all acts.
    pub steps: u64,
    /// Faults that fired.
    pub faults_fired: u64,
}

impl Report {
    /// The counts of the whole report.
    pub fn counts(&self) -> Counts {
        Counts::of(self.cases.iter())
    }

    /// The counts of each topic, in the order of the suite.
    pub fn topics(&self) -> Vec<(&str, Counts)> {
        let mut seen = BTreeSet::new();
        let topics = self.cases.iter().map(Judged::topic);
        let of = |topic| self.cases.iter().filter(move |case| case.topic() == topic);
        topics
            .filter(|topic| seen.insert(*topic))
            .map(|topic| (topic, Counts::of(of(topic))))
            .collect()
    }

    /// The summary of the model's runs, if the model was judged.
    pub fn played(&self) -> Option<Summary> {
        self.cases.iter().find_map(|case| case.played)
    }

    /// Whether nothing failed and at least one case was judged.
    pub fn is_clean(&self) -> bool {
        let Counts { failed, passed, .. } = self.counts();
        failed == 0 && passed > 0
    }
}

impl Counts {
    fn of<'a>(cases: impl Iterator<Item = &'a Judged>) -> Self {
        cases.fold(Self::default(), |mut counts, case| {
            counts.cases += 1;
            match case.result {
                CaseResult::Passed => counts.passed += 1,
                CaseResult::Failed(_) => counts.failed += 1,
                CaseResult::Unsupported => counts.unsupported += 1,
            }
            counts.steps += case.steps;
            counts.faults_fired += case.faults_fired;
            counts
        })
    }
}
