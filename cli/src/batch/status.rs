//! `relq batch status`: prints the progress of a batch.

use relq::batch::BatchId;

use super::{
    known::{batches_of, known},
    report::Report,
    watch::Watch,
};
use crate::{failure::CommandResult, format::Format, target::Target};

/// Print the progress of a batch
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The id of the batch
    id: BatchId,

    /// Draw a progress bar until the batch has completed, and then print its status
    #[arg(long)]
    watch: bool,

    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        let batches = batches_of(&*queue)?;
        let status = if self.watch {
            Watch::drawn().until_completed(batches, &self.id, None).await?
        } else {
            known(&self.id, batches.batch(&self.id).await?)?
        };
        self.format.show(&Report::of(&status))
    }
}
