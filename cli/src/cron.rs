//! `relq cron`: stores schedules, lists them, and pushes their jobs at their times.

mod add;
mod list;
mod next;
mod remove;
mod run;
mod stored;

use clap::Subcommand;

pub(crate) use stored::schedules_of;

use crate::{failure::CommandResult, target::Target};

/// Push jobs at set times: by cron expressions or in fixed intervals
///
/// A schedule is stored in the queue. `relq cron run`, or `relq work --schedules`, pushes
/// its jobs. Any number of them may run at once: each tick is pushed once. All backends but
/// keyspace have schedules; a queue of several partitions has none.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    Add(add::Args),
    List(list::Args),
    Next(next::Args),
    Remove(remove::Args),
    Run(run::Args),
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        match self.action {
            Action::Add(args) => args.run(target).await,
            Action::List(args) => args.run(target).await,
            Action::Next(args) => args.run(target).await,
            Action::Remove(args) => args.run(target).await,
            Action::Run(args) => args.run(target).await,
        }
    }
}
