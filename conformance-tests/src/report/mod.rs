//! The results of the whole suite for one backend.
//!
//! [`judge`] returns one result for each test of the suite. It runs every case that
//! applies to the kind of store, and the [model](crate::spec). If the backend is on
//! Redis, or is embedded and declares how its [processes](crate::sweep::processes) are
//! killed, it also runs every [scene](crate::explore) and every act. An act is a call
//! or a worker that is tested with [one fault at each of its steps](crate::sweep).

mod grid;
mod judge;
mod markdown;
mod table;

use std::collections::BTreeSet;

pub use judge::{Chosen, expected, judge};

use crate::spec::Summary;

/// How a case or an act (a call that is tested with faults) ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CaseResult {
    /// The backend kept the promise.
    Passed,
    /// The backend does not support the option that the case needs, and refuses the
    /// option before anything is stored.
    Unsupported,
    /// The backend broke the promise. The text is the message of the failed check.
    Failed(String),
}

/// A case, or an act (a call that is tested with faults), and its result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Judged {
    /// The id of the case or act: `topic::name`.
    pub id: String,
    /// The numbers of the contract's rules that the case tests, such as `R7`.
    pub rules: &'static [&'static str],
    /// Whether the backend kept the promise.
    pub result: CaseResult,
    /// The number of steps (commands or SQL statements) of the act in a run without
    /// faults. Zero for a case.
    pub steps: u64,
    /// The number of injected faults that took effect.
    pub faults_fired: u64,
    /// How much the reference model has tested, if this is the result of the model.
    /// `None` for a case or an act.
    pub played: Option<Summary>,
}

impl Judged {
    /// Returns the topic, which is the part of the id before the colons.
    pub fn topic(&self) -> &str {
        self.id.split_once("::").map_or(&self.id, |(topic, _)| topic)
    }
}

/// The results of all tests of the suite for one backend.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Report {
    /// The name of the backend.
    pub backend: &'static str,
    /// The result of each case and act, in the order in which the suite runs them.
    pub cases: Vec<Judged>,
}

/// How many cases of a report, or of one topic of it, ended in each way.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Counts {
    /// The number of cases and acts in the report.
    pub cases: usize,
    /// The number of promises that the backend kept.
    pub passed: usize,
    /// The number of promises that the backend broke.
    pub failed: usize,
    /// The number of cases and acts that need an option which the backend does not
    /// support and refuses.
    pub unsupported: usize,
    /// The number of steps that all acts take when no fault is injected.
    pub steps: u64,
    /// The number of injected faults that took effect.
    pub faults_fired: u64,
}

impl Report {
    /// Adds up the results of the whole report.
    pub fn counts(&self) -> Counts {
        Counts::of(self.cases.iter())
    }

    /// Adds up the results of each topic. The topics are in the order of the suite.
    pub fn topics(&self) -> Vec<(&str, Counts)> {
        let mut seen = BTreeSet::new();
        let topics = self.cases.iter().map(Judged::topic);
        let of = |topic| self.cases.iter().filter(move |case| case.topic() == topic);
        topics
            .filter(|topic| seen.insert(*topic))
            .map(|topic| (topic, Counts::of(of(topic))))
            .collect()
    }

    /// Returns how much the reference model has tested, or `None` if it did not run.
    pub fn played(&self) -> Option<Summary> {
        self.cases.iter().find_map(|case| case.played)
    }

    /// Returns whether at least one case was tested and no promise was broken.
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
