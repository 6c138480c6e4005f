//! Prints the report as text for a terminal.

use std::fmt;

use super::{CaseResult, Counts, Judged, Report};
use crate::spec::Summary;

/// Prints the counts of each topic, then the totals, then each failure with its
/// message.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "{:<16} {:>6} {:>7} {:>7} {:>10} {:>7} {:>7}",
            self.backend, "cases", "passed", "failed", "unsupported", "steps", "faults"
        )?;
        for (topic, counts) in self.topics() {
            line(f, topic, &counts)?;
        }
        line(f, "all", &self.counts())?;
        if let Some(Summary { sequences, operations, faults_fired }) = self.played() {
            writeln!(
                f,
                "\nthe model played {sequences} sequences of {operations} operations, \
                 hit by a fault by {faults_fired} faults"
            )?;
        }
        self.failures().try_for_each(|(case, words)| {
            writeln!(f, "\n{} ({}): {words}", case.id, case.rules.join(", "))?;
            writeln!(f, "  {}", self.replay(case))
        })
    }
}

fn line(f: &mut fmt::Formatter<'_>, topic: &str, counts: &Counts) -> fmt::Result {
    let Counts { cases, passed, failed, unsupported, steps, faults_fired } = counts;
    writeln!(
        f,
        "{topic:<16} {cases:>6} {passed:>7} {failed:>7} {unsupported:>10} {steps:>7} \
         {faults_fired:>7}"
    )
}

impl Report {
    /// Returns the cases and acts that failed, each with its failure message.
    pub fn failures(&self) -> impl Iterator<Item = (&Judged, &str)> {
        self.cases.iter().filter_map(|case| match &case.result {
            CaseResult::Failed(words) => Some((case, words.as_str())),
            _ => None,
        })
    }

    /// Returns the command line that runs one case or act of the report again.
    pub fn replay(&self, case: &Judged) -> String {
        format!("conformance report --backend {} --only {}", self.backend, case.id)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(id: &str, result: CaseResult) -> Judged {
        let (id, rules) = (id.to_owned(), &["R1"][..]);
        Judged { id, rules, result, steps: 2, faults_fired: 3, played: None }
    }

    fn report() -> Report {
        let cases = vec![
            judged("a::kept", CaseResult::Passed),
            judged("a::broken", CaseResult::Failed("job 7 is lost".to_owned())),
            judged("b::refused", CaseResult::Unsupported),
        ];
        Report { backend: "mine", cases }
    }

    #[test]
    fn a_failure_is_reported_with_the_command_that_repeats_it() {
        let text = report().to_string();

        assert!(text.contains("a::broken (R1): job 7 is lost"), "{text}");
        assert!(text.contains("report --backend mine --only a::broken"), "{text}");
        assert!(!report().is_clean());
    }

    #[test]
    fn the_faults_of_all_cases_are_counted() {
        assert_eq!(report().counts().faults_fired, 9);
    }

    #[test]
    fn the_runs_of_the_model_are_reported() {
        let played = Some(Summary { sequences: 66, operations: 1900, faults_fired: 7 });
        let mut report = report();
        report
            .cases
            .push(Judged { played, ..judged("model::all", CaseResult::Passed) });

        let text = report.to_string();

        assert!(
            text.contains("66 sequences of 1900 operations, hit by a fault by 7"),
            "{text}"
        );
    }

    #[test]
    fn a_report_of_nothing_is_not_clean() {
        assert!(!Report { backend: "mine", cases: vec![] }.is_clean());
    }
}
