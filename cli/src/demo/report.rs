//! The report that `relq demo` prints at its end.

use std::{fmt, time::Duration};

use serde::Serialize;

use super::judge::Judgement;

/// The part of the report that shows one batch and how long it took.
#[derive(Serialize, Debug)]
pub(super) struct Batch {
    pub(super) id: String,
    pub(super) priority: u8,
    pub(super) pieces: u64,
    pub(super) done: u64,
    pub(super) seconds: f64,
}

/// The counts and problems of a demo, as text or JSON.
#[derive(Serialize, Debug)]
pub(super) struct Report {
    pushed: u64,
    finished: u64,
    lost: u64,
    repeated: u64,
    kills: u64,
    kills_at_work: u64,
    seconds: f64,
    jobs_a_second: f64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    batches: Vec<Batch>,
    problems: Vec<String>,
}

impl Report {
    pub(super) fn new(
        pushed: u64,
        took: Duration,
        judgement: Judgement,
        batches: Vec<Batch>,
    ) -> Self {
        let seconds = took.as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "a rate is not exact")]
        let jobs_a_second = judgement.finished as f64 / seconds;
        Self {
            pushed,
            finished: judgement.finished,
            lost: judgement.lost,
            repeated: judgement.repeated,
            kills: judgement.kills,
            kills_at_work: judgement.kills_at_work,
            seconds: round(seconds),
            jobs_a_second: round(jobs_a_second),
            batches,
            problems: judgement.problems,
        }
    }

    /// Whether no job was lost and there are no problems.
    pub(super) fn is_clean(&self) -> bool {
        self.lost == 0 && self.problems.is_empty()
    }
}

pub(super) fn round(value: f64) -> f64 {
    (value * 100.0).round() / 100.0
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "pushed             {:>8}", self.pushed)?;
        writeln!(f, "finished           {:>8}", self.finished)?;
        writeln!(f, "lost               {:>8}", self.lost)?;
        writeln!(f, "run more than once {:>8}", self.repeated)?;
        let at_work = self.kills_at_work;
        writeln!(
            f,
            "kills              {:>8}  ({at_work} in the middle of jobs)",
            self.kills
        )?;
        writeln!(f, "seconds            {:>8.2}", self.seconds)?;
        writeln!(f, "jobs a second      {:>8.0}", self.jobs_a_second)?;
        for Batch { id, priority, pieces, done, seconds } in &self.batches {
            writeln!(
                f,
                "batch {id:<12} {done:>8}  of {pieces} pieces at priority {priority}, \
                 complete after {seconds:.2} s"
            )?;
        }
        self.problems.iter().try_for_each(|problem| writeln!(f, "problem: {problem}"))
    }
}
