//! `relq pause` and `relq resume`: stop and restart the claims of all workers.

use std::fmt;

use serde::Serialize;

use crate::{failure::CommandResult, format::Format, target::Target};

/// Stop giving jobs to workers; jobs that they hold continue
#[derive(clap::Args, Debug)]
pub(crate) struct PauseArgs {
    #[command(flatten)]
    format: Format,
}

/// Give jobs to workers again
#[derive(clap::Args, Debug)]
pub(crate) struct ResumeArgs {
    #[command(flatten)]
    format: Format,
}

impl PauseArgs {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        target.open_existing().await?.pause().await?;
        self.format.show(&Report { paused: true })
    }
}

impl ResumeArgs {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        target.open_existing().await?.resume().await?;
        self.format.show(&Report { paused: false })
    }
}

#[derive(Serialize)]
struct Report {
    paused: bool,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(if self.paused { "paused\n" } else { "running\n" })
    }
}
