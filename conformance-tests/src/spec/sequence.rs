//! A sequence of operations, and its form as text, which is a replay line.

use std::{fmt, num::NonZeroU32, str::FromStr};

use relq_core::environment::Environment;

use super::operation::Operation;

/// Some operations, and how many jobs the backend handles in one step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Sequence {
    pub(crate) steps: Steps,
    pub(crate) operations: Vec<Operation>,
}

/// How many jobs a backend handles in one step of a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Steps {
    /// The backend's default: more jobs than any sequence has.
    Usual,
    /// One job per step, so that faults also fire between the jobs of one call.
    OfOneJob,
}

/// The text at the beginning of a replay line if each step of its calls handles one
/// job.
const OF_ONE_JOB: &str = "steps of one job;";

impl Steps {
    pub(crate) fn max_jobs(self) -> NonZeroU32 {
        match self {
            Self::Usual => Environment::MAX_JOBS_PER_STEP,
            Self::OfOneJob => NonZeroU32::MIN,
        }
    }
}

impl fmt::Display for Sequence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.steps == Steps::OfOneJob {
            write!(f, "{OF_ONE_JOB} ")?;
        }
        let operations = self.operations.iter().map(ToString::to_string);
        f.write_str(&operations.collect::<Vec<_>>().join("; "))
    }
}

impl FromStr for Sequence {
    type Err = String;

    fn from_str(line: &str) -> Result<Self, String> {
        let (steps, line) = match line.strip_prefix(OF_ONE_JOB) {
            Some(rest) => (Steps::OfOneJob, rest),
            None => (Steps::Usual, line),
        };
        let operations = line.split(';').map(|one| one.trim().parse());
        Ok(Self { steps, operations: operations.collect::<Result<_, _>>()? })
    }
}
