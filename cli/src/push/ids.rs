//! The output of `relq push`: the id of each job when the job is stored. With --quiet
//! it is only the number of jobs, at the end.

use std::fmt;

use relq::outcome::{DuplicateOf, Pushed};
use serde::Serialize;

use crate::{
    failure::{CommandResult, Failure},
    format::{Format, Records},
    message::say,
    output::Output,
};

/// Prints the results of a push. If the reader of the output closes it, the push goes
/// on and prints nothing more.
#[derive(Debug)]
pub(super) struct Ids {
    to: Option<To>,
    format: Format,
    count: Count,
}

#[derive(Debug)]
enum To {
    Text(Output),
    Json(Records),
}

#[derive(Serialize, Default, Debug, Clone, Copy)]
struct Count {
    stored: u64,
    duplicates: u64,
}

#[derive(Serialize)]
struct Answer<'a> {
    id: &'a str,
    stored: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    duplicate_of: Option<&'static str>,
}

impl Ids {
    pub(super) fn new(quiet: bool, format: Format) -> CommandResult<Self> {
        let to = match (quiet, format.is_json()) {
            (true, _) => None,
            (false, true) => Some(To::Json(format.records()?)),
            (false, false) => Some(To::Text(Output::new())),
        };
        Ok(Self { to, format, count: Count::default() })
    }

    /// Counts the jobs that one push call stored, and prints their ids, unless the user
    /// asked for the number only.
    pub(super) fn stored(&mut self, pushed: &[Pushed]) -> CommandResult {
        for answer in pushed {
            match answer {
                Pushed::Stored(_) => self.count.stored += 1,
                Pushed::Duplicate { .. } => self.count.duplicates += 1,
            }
        }
        match self.print(pushed) {
            Err(Failure::OutputClosed) => {
                self.to = None;
                Ok(())
            }
            printed => printed,
        }
    }

    /// Prints the end of the output: that of the JSON records, or the number of jobs.
    pub(super) fn end(self) -> CommandResult {
        match self.to {
            Some(To::Json(records)) => records.end(),
            Some(To::Text(mut out)) => {
                if self.count.duplicates > 0 {
                    say(self.count.to_string().trim_end());
                }
                out.flush()
            }
            None => self.format.show(&self.count),
        }
    }

    fn print(&mut self, pushed: &[Pushed]) -> CommandResult {
        match &mut self.to {
            None => Ok(()),
            Some(To::Text(out)) => {
                for answer in pushed {
                    out.name(answer.job().as_str())?;
                }
                out.flush()
            }
            Some(To::Json(records)) => {
                pushed
                    .iter()
                    .try_for_each(|answer| records.item(&Answer::from(answer)))?;
                records.flush()
            }
        }
    }
}

impl<'a> From<&'a Pushed> for Answer<'a> {
    fn from(pushed: &'a Pushed) -> Self {
        let duplicate_of = match pushed {
            Pushed::Stored(_) => None,
            Pushed::Duplicate { by: DuplicateOf::Id, .. } => Some("id"),
            Pushed::Duplicate { by: DuplicateOf::UniqueKey, .. } => Some("unique"),
        };
        let stored = duplicate_of.is_none();
        Self { id: pushed.job().as_str(), stored, duplicate_of }
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.duplicates {
            0 => writeln!(f, "{}", self.stored),
            duplicates => {
                writeln!(f, "{} stored, {duplicates} there already", self.stored)
            }
        }
    }
}
