//! `relq cron remove`: removes schedules.

use std::fmt;

use relq::schedule::ScheduleName;
use serde::Serialize;

use super::stored::{schedules_of, unknown};
use crate::{failure::CommandResult, format::Format, target::Target};

/// Remove a schedule
///
/// Jobs that it has pushed stay in the queue. Schedulers that still know the schedule
/// push no more of its jobs.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The name of the schedule
    name: ScheduleName,

    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(super) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        if !schedules_of(&*queue)?.remove_schedule(&self.name).await? {
            return Err(unknown(&self.name));
        }
        self.format.show(&Report { removed: self.name.as_str() })
    }
}

#[derive(Serialize)]
struct Report<'a> {
    removed: &'a str,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} removed", self.removed)
    }
}
