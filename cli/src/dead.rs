//! `relq dead`: lists dead jobs, makes them ready again, or removes them.

mod filter;

use std::fmt;

use clap::Subcommand;
use relq::{
    JobId,
    operator::{JobState, Redriven, Selection},
};
use serde::Serialize;

use crate::{
    failure::{CommandResult, Failure},
    format::Format,
    peek::Listing,
    target::Target,
};
use filter::DeadFilter;

/// Look at the dead jobs, make them ready again, or remove them
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    /// List dead jobs with the reason and their last error
    ///
    /// With a filter, all dead jobs are read, page by page, until there are --limit jobs
    /// that fit it: `relq dead list --error timeout -o jsonl`.
    List(ListArgs),
    /// Make dead jobs ready again, with no attempt counted
    #[command(visible_alias = "retry")]
    Redrive(DeadArgs),
    /// Remove dead jobs for good, and cancel the jobs that follow them
    Purge(DeadArgs),
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        match self.action {
            Action::List(ListArgs { filter, listing }) => {
                let queue = target.open_existing().await?;
                listing.print(&*queue, JobState::Dead, &filter).await
            }
            Action::Redrive(selection) => selection.redrive(target).await,
            Action::Purge(selection) => selection.purge(target).await,
        }
    }
}

#[derive(clap::Args, Debug)]
struct ListArgs {
    #[command(flatten)]
    filter: DeadFilter,

    #[command(flatten)]
    listing: Listing,
}

/// The arguments that select dead jobs: their ids, or all.
#[derive(clap::Args, Debug)]
#[group(skip)]
struct DeadArgs {
    /// The ids of the jobs
    #[arg(value_name = "ID")]
    ids: Vec<JobId>,

    /// Select all dead jobs
    #[arg(long, conflicts_with = "ids")]
    all: bool,

    #[command(flatten)]
    format: Format,
}

impl DeadArgs {
    async fn redrive(self, target: &Target) -> CommandResult {
        let which = self.which()?;
        let done = target.open_existing().await?.redrive(&which).await?;
        self.format.show(&RedriveReport::new(done))?;
        self.complain_of_missing(done.moved + done.duplicates)
    }

    async fn purge(self, target: &Target) -> CommandResult {
        let which = self.which()?;
        let purged = target.open_existing().await?.purge_dead(&which).await?;
        self.format.show(&PurgeReport { purged })?;
        self.complain_of_missing(purged)
    }

    fn which(&self) -> CommandResult<Selection> {
        match (self.all, self.ids.is_empty()) {
            (true, _) => Ok(Selection::All),
            (false, false) => Ok(Selection::Only(self.ids.clone())),
            (false, true) => Err(Failure::Usage(
                "select dead jobs: give their ids (see `relq dead list`), or --all"
                    .to_owned(),
            )),
        }
    }

    /// Fails if fewer jobs were found than ids were given: the missing ids are probably
    /// typing errors.
    fn complain_of_missing(&self, found: u64) -> CommandResult {
        let mut asked = self.ids.clone();
        asked.sort();
        asked.dedup();
        let missing = (asked.len() as u64).saturating_sub(found);
        if missing == 0 {
            return Ok(());
        }
        let message =
            format!("{missing} of these ids name no dead job: see `relq dead list`");
        Err(Failure::Failed(message))
    }
}

#[derive(Serialize)]
struct RedriveReport {
    moved: u64,
    duplicates: u64,
}

impl RedriveReport {
    fn new(done: Redriven) -> Self {
        Self { moved: done.moved, duplicates: done.duplicates }
    }
}

impl fmt::Display for RedriveReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} ready again", self.moved)?;
        if self.duplicates > 0 {
            let held = "still dead, because another job holds their unique key";
            writeln!(f, "{} {held}", self.duplicates)?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct PurgeReport {
    purged: u64,
}

impl fmt::Display for PurgeReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} removed", self.purged)
    }
}
