//! `relq batch alter`: changes the priority or limit of a running batch.

use std::num::NonZeroU32;

use relq::batch::{BatchId, BatchPriority, Change};

use super::{
    known::{batches_of, known},
    report::Report,
};
use crate::{
    failure::{CommandResult, Failure},
    format::Format,
    target::Target,
    values::{batch_priority, limit},
};

/// Change the priority or the limit of a batch that has not completed
///
/// A lower limit does not stop running pieces: it takes effect when enough have ended.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The id of the batch
    id: BatchId,

    /// The new priority, from 0 to 99; a larger one is served sooner
    #[arg(long, value_parser = batch_priority, value_name = "N")]
    priority: Option<BatchPriority>,

    /// How many of its pieces may run at once; 0 for any number
    #[arg(long, value_name = "N", value_parser = limit)]
    limit: Option<u32>,

    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        if self.priority.is_none() && self.limit.is_none() {
            let problem = "nothing to change: give --priority or --limit";
            return Err(Failure::Usage(problem.to_owned()));
        }
        let mut change = Change::default();
        change.priority = self.priority;
        change.limit = self.limit.map(NonZeroU32::new);
        let queue = target.open_existing().await?;
        let altered = batches_of(&*queue)?.alter(&self.id, &change).await?;
        self.format.show(&Report::of(&known(&self.id, altered)?))
    }
}
