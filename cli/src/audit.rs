//! `relq audit`: checks that each job is in exactly one state.

use std::fmt;

use relq::operator::Audit;
use serde::Serialize;

use crate::{
    failure::{CommandResult, Failure},
    format::{Format, counted},
    printable::printable,
    target::Target,
};

/// Check that each job is in exactly one state, and print each problem
///
/// Reads the whole queue. Exits with 1 when something is wrong. The audit of a large
/// queue needs some 50 bytes a job in a temporary file, in the folder that TMPDIR names.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let Audit { jobs, problems } = target.open_existing().await?.audit().await?;
        let report = Report { jobs, problems };
        self.format.show(&report)?;
        if report.problems.is_empty() { Ok(()) } else { Err(Failure::Reported) }
    }
}

#[derive(Serialize)]
struct Report {
    jobs: u64,
    problems: Vec<String>,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for problem in &self.problems {
            // A problem may quote a stored entry, which can contain newlines and
            // control characters.
            writeln!(f, "{}", printable(problem))?;
        }
        let jobs = counted(self.jobs, "job");
        let problems = counted(self.problems.len() as u64, "problem");
        writeln!(f, "{jobs} looked at, {problems}")
    }
}
