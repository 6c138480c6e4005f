//! `relq batch cancel`: ends batches that have not completed.

use relq::batch::{BatchId, BatchStatus};

use super::{known::batches_of, report::Report};
use crate::{
    each_id::call_for_each,
    failure::{CommandResult, Failure, unless_closed},
    format::Format,
    output::Output,
    printable::printable,
    target::Target,
};

/// Drop the pieces that are not started, and notify the workers that hold the others
///
/// A batch completes when its last running piece has ended. A batch that has already
/// completed does not change.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The ids of the batches
    #[arg(value_name = "ID", required = true)]
    ids: Vec<BatchId>,

    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        let batches = batches_of(&*queue)?;
        let (answers, ended) =
            call_for_each(&self.ids, async |id| batches.cancel_batch(id).await).await;
        let found: Vec<_> = answers.into_iter().flatten().collect();
        unless_closed(self.print(&found))?;
        ended?;
        match self.ids.len() - found.len() {
            0 => Ok(()),
            missing => {
                Err(Failure::Failed(format!("{missing} of these ids name no batch")))
            }
        }
    }

    fn print(&self, found: &[BatchStatus]) -> CommandResult {
        if self.format.is_json() {
            return self.format.print_records(found.iter().map(Report::of));
        }
        let mut out = Output::new();
        for BatchStatus { id, state, .. } in found {
            out.text(&format!("{} {state}\n", printable(id.as_str())))?;
        }
        out.flush()
    }
}
