//! `relq dead`: lists dead jobs, makes them ready again, or removes them.

mod filter;
mod groups;

use std::fmt;

use clap::Subcommand;
use relq::{
    JobId, Queue,
    operator::{JobState, Redriven, Selection},
};
use serde::Serialize;

use crate::{
    failure::{CommandResult, Failure},
    format::{Format, counted},
    peek::{Filter as _, Listing},
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
    /// that fit it: `relq dead list --error timeout -n 1000 -o jsonl`.
    ///
    /// With --group, the jobs with the same error are one line, and numbers and ids in the
    /// errors do not count. Only the newest 10,000 dead jobs are grouped, or the oldest if the
    /// backend has no index of them.
    List(ListArgs),
    /// Make dead jobs ready again, with no attempt counted
    ///
    /// The jobs are given by their ids, by --all, or by filters, as `relq dead list` has
    /// them. With a filter all dead jobs are read first, and then those that fit are made
    /// ready: a job that dies meanwhile is not one of them, unless it was dead before and
    /// fitted.
    ///
    /// A job stays dead while another job holds its unique key.
    #[command(
        visible_alias = "retry",
        after_help = "Exit codes: 0 done; 1 the queue cannot be used, or an id names no dead \
                      job, or a job that stays dead."
    )]
    Redrive(DeadArgs),
    /// Remove dead jobs for good, and cancel the jobs that follow them
    ///
    /// The jobs are given by their ids, by --all, or by filters, as `relq dead list` has
    /// them. With a filter all dead jobs are read first, and then those that fit are
    /// removed: a job that dies meanwhile is not one of them, unless it was dead before and
    /// fitted.
    Purge(DeadArgs),
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        match self.action {
            Action::List(args) => args.run(target).await,
            Action::Redrive(selection) => selection.redrive(target).await,
            Action::Purge(selection) => selection.purge(target).await,
        }
    }
}

#[derive(clap::Args, Debug)]
struct ListArgs {
    #[command(flatten)]
    filter: DeadFilter,

    /// Print a line for each error, with the number of jobs that have it
    #[arg(long, conflicts_with_all = ["DeadFilter", "newest"])]
    group: bool,

    /// Take only the very same errors for one, with all their numbers
    #[arg(long, requires = "group")]
    exact: bool,

    #[command(flatten)]
    listing: Listing,
}

impl ListArgs {
    async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        if self.group {
            return groups::print(&*queue, self.exact, &self.listing).await;
        }
        self.listing.print(&*queue, JobState::Dead, &self.filter).await
    }
}

/// The arguments that select dead jobs: their ids, filters, or all.
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
    filter: DeadFilter,

    #[command(flatten)]
    format: Format,
}

impl DeadArgs {
    async fn redrive(self, target: &Target) -> CommandResult {
        self.check()?;
        let queue = target.open_existing().await?;
        let done = queue.redrive(&self.which(&*queue).await?).await?;
        self.format.show(&RedriveReport::new(done))?;
        self.complain_of_missing(done.moved + done.duplicates)?;
        if self.ids.is_empty() || done.duplicates == 0 {
            return Ok(());
        }
        let kept = counted(done.duplicates, "job");
        Err(Failure::Failed(format!("not made ready: {kept}")))
    }

    async fn purge(self, target: &Target) -> CommandResult {
        self.check()?;
        let queue = target.open_existing().await?;
        let purged = queue.purge_dead(&self.which(&*queue).await?).await?;
        self.format.show(&PurgeReport { purged })?;
        self.complain_of_missing(purged)
    }

    fn check(&self) -> CommandResult {
        let is_filtered = !self.filter.is_everything();
        let problem = match (self.all, self.ids.is_empty(), is_filtered) {
            (false, true, false) => {
                "select dead jobs: give their ids (see `relq dead list`), a filter such as \
                 --error, or --all"
            }
            (true, _, true) | (_, false, true) => {
                "a filter selects among all dead jobs: give neither ids nor --all"
            }
            _ => return Ok(()),
        };
        Err(Failure::Usage(problem.to_owned()))
    }

    /// The jobs that the arguments select.
    async fn which(&self, queue: &dyn Queue) -> CommandResult<Selection> {
        Ok(match self.all {
            true => Selection::All,
            false if self.filter.is_everything() => Selection::Only(self.ids.clone()),
            false => Selection::Only(self.filter.ids(queue).await?),
        })
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
