//! Counts from the records of the batch soak how often each job was begun and ended.

use std::collections::BTreeMap;

use super::super::record::{Kind, Record};

/// How often one job was begun and ended.
#[derive(Debug, Clone, Copy, Default)]
struct Run {
    begun: u64,
    ended: u64,
}

/// The runs of all jobs, and the errors found while reading the records.
#[derive(Debug, Default)]
pub(super) struct Runs {
    jobs: BTreeMap<u64, Run>,
    wrong: Vec<String>,
}

impl Runs {
    pub(super) fn add(&mut self, record: Record) {
        match record.kind {
            Kind::Start => self.jobs.entry(record.job).or_default().begun += 1,
            Kind::End => self.jobs.entry(record.job).or_default().ended += 1,
            other => self.wrong.push(format!("a record of {other:?}")),
        }
    }

    /// Checks that each of these jobs ran to its end (R1), that each end has a
    /// beginning, and that at most `most` runs were repeated (R6).
    pub(super) fn judge(
        mut self,
        jobs: impl IntoIterator<Item = u64>,
        most: u64,
    ) -> Vec<String> {
        let has_ended = |job: &u64| self.jobs.get(job).is_some_and(|run| run.ended > 0);
        let missing = jobs.into_iter().filter(|job| !has_ended(job));
        self.wrong.extend(missing.map(|job| format!("R1: {job} did not run")));
        for (job, Run { begun, ended }) in &self.jobs {
            if ended > begun {
                let words = format!("{job} was begun {begun} times and ended {ended}");
                self.wrong.push(words);
            }
        }
        let again: u64 =
            self.jobs.values().map(|run| run.begun.saturating_sub(1)).sum();
        if again > most {
            self.wrong.push(format!("R6: {again} runs more than {most} at most"));
        }
        self.wrong
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn judged(records: &[(Kind, u64)], most: u64) -> Vec<String> {
        let mut runs = Runs::default();
        for &(kind, job) in records {
            runs.add(Record { kind, job, count: 1 });
        }
        runs.judge([1, 2], most)
    }

    /// R1, R6: the judge accepts a job that was begun twice because of one kill.
    #[test]
    fn whole_records_are_passed() {
        let two = [(Kind::Start, 2), (Kind::End, 2)];
        let again = [(Kind::Start, 1), (Kind::Start, 1), (Kind::End, 1)];

        assert_eq!(judged(&[two.as_slice(), &again].concat(), 1), [""; 0]);
    }

    #[test]
    fn each_broken_promise_is_reported() {
        let two = [(Kind::Start, 2), (Kind::End, 2)];
        let cases: [(&[_], &str); 4] = [
            (&[(Kind::Start, 1)], "R1: 1 did not run"),
            (&[(Kind::End, 1)], "1 was begun 0 times and ended 1"),
            (
                &[(Kind::Start, 1), (Kind::Start, 1), (Kind::End, 1)],
                "R6: 1 runs more than 0 at most",
            ),
            (
                &[(Kind::Start, 1), (Kind::End, 1), (Kind::Changed, 0)],
                "a record of Changed",
            ),
        ];

        for (records, words) in cases {
            assert_eq!(judged(&[two.as_slice(), records].concat(), 0), [words]);
        }
    }
}
