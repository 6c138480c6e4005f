//! `relq purge`: empties a queue.

use std::fmt;

use serde::Serialize;

use crate::{
    failure::{CommandResult, Failure},
    format::Format,
    target::Target,
};

/// Remove every job in every state, every batch, and all remembered ids and tokens
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Confirm that every job is to be removed
    #[arg(long)]
    yes: bool,

    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        if !self.yes {
            let queue = &target.queue;
            return Err(Failure::Usage(format!(
                "purge removes every job of the queue {queue} for good: add --yes"
            )));
        }
        let purged = target.open_existing().await?.purge().await?;
        self.format.show(&Report { purged })
    }
}

#[derive(Serialize)]
struct Report {
    purged: u64,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} removed", self.purged)
    }
}
