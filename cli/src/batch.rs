//! `relq batch`: requests of many jobs that complete as one.

mod alter;
mod cancel;
mod list;
mod request;
mod status;
mod submit;
mod watch;

use clap::Subcommand;
use relq::{BatchId, BatchPriority, BatchQueue, BatchStatus, Queue};

use crate::{
    args::Target,
    failure::{CommandResult, Failure},
};

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

/// The batch calls of a queue; fails if the backend has no batches.
pub(crate) fn batches_of(queue: &dyn Queue) -> CommandResult<&dyn BatchQueue> {
    let backend = queue.capabilities().backend;
    queue.batch_queue().ok_or_else(|| {
        Failure::Usage(format!(
            "the backend {backend} has no batches: choose another --url"
        ))
    })
}

/// The status of a batch that must exist.
fn known(id: &BatchId, status: Option<BatchStatus>) -> CommandResult<BatchStatus> {
    status.ok_or_else(|| Failure::Failed(format!("there is no batch {id}")))
}

/// A priority from 0 to 99.
fn priority(text: &str) -> Result<BatchPriority, String> {
    let level = text.parse().ok().and_then(BatchPriority::new);
    level.ok_or_else(|| {
        "a batch's priority is a number from 0 to 99, larger is sooner".to_owned()
    })
}
