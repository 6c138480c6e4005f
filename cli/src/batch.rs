//! `relq batch`: submits batches and follows them. A batch is a request of many jobs
//! that completes once.

mod alter;
mod calls;
mod cancel;
mod json;
mod json_fields;
mod json_request;
mod known;
mod list;
mod report;
mod request;
mod status;
mod submit;
mod watch;

use clap::Subcommand;

pub(crate) use known::batches_of;

use crate::{failure::CommandResult, target::Target};

/// Submit batches of jobs, and follow their progress
///
/// A batch is a request of many pieces. Any worker of the queue runs a piece like any
/// job (`relq work`, with the batch's id in RELQ_BATCH). A batch has a priority and a
/// limit on how many of its pieces run at once, and it completes once. The backends
/// sqlite and stream have batches.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: Action,
}

#[derive(Subcommand, Debug)]
enum Action {
    Submit(submit::Args),
    Status(status::Args),
    Wait(watch::Args),
    Cancel(cancel::Args),
    Alter(alter::Args),
    List(list::Args),
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        match self.action {
            Action::Submit(args) => Box::pin(args.run(target)).await,
            Action::Status(args) => Box::pin(args.run(target)).await,
            Action::Wait(args) => Box::pin(args.run(target)).await,
            Action::Cancel(args) => args.run(target).await,
            Action::Alter(args) => args.run(target).await,
            Action::List(args) => args.run(target).await,
        }
    }
}
