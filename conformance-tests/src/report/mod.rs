//! What the whole suite says of a backend.
//!
//! [`judge`] runs every case that concerns a kind of store, every act of
//! [depth 1](crate::steps) for one on Redis, or for an embedded one that says how its
//! [processes](crate::processes) are killed, and the [model](crate::model), and answers
//! with a result of each.

mod grid;
mod judge;
mod markdown;
mod table;

use std::collections::BTreeSet;

pub use judge::{Chosen, judge};

use crate::model::Summary;

/// What became of one case.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseResult {
    /// The promise was kept.
    Passed,
    /// The backend does not support what the case needs, and refuses it cleanly.
    Unsupported,
    /// The promise was broken, in these words.
    Failed(String),
}

/// One case or act, judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// `topic::name`.
    pub id: String,
    /// The rules that it judges.
    pub rules: &'static [&'static str],
    /// What became of it.
    pub result: CaseResult,
    /// Steps of its act.
    pub steps: u64,
    /// Faults that fired at them.
    pub faults_fired: u64,
    /// What the model played, if this is its result.
    pub played: Option<Summary>,
}

impl Judged {
    /// The part of the id before the colons.
    pub fn topic(&self) -> &str {
        self.id.split_once("::").map_or(&self.id, |(topic, _)| topic)
    }
}

/// A backend, judged.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// Its name.
    pub backend: &'static str,
    /// All that was judged, in the order of the suite.
    pub cases: Vec<Judged>,
}

/// Counts of a report, or of one topic of it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// All that were judged.
    pub cases: usize,
    /// Promises kept.
    pub passed: usize,
    /// Promises broken.
    pub failed: usize,
    /// Options not supported, and refused.
    pub unsupported: usize,
    /// Steps of all acts.
    pub steps: u64,
    /// Faults that fired.
    pub faults_fired: u64,
}

impl Report {
    /// The counts of the whole.
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

    /// What the model played, if it was asked.
    pub fn played(&self) -> Option<Summary> {
        self.cases.iter().find_map(|case| case.played)
    }

    /// Nothing failed, and something was judged.
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
