//! `relq batch list`: prints the batches of a queue.

use std::num::NonZeroU32;

use relq::batch::{BatchId, BatchQueue, BatchStatus};

use super::{known::batches_of, report::Report};
use crate::{
    failure::CommandResult, format::Format, printable::printable, table::Table,
    target::Target,
};

/// How many batches one call reads: few enough that no call blocks the store for long.
const PAGE: NonZeroU32 = NonZeroU32::new(100).expect("not zero");

/// List the batches of the queue, in the order of their ids
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// List only batches that have not completed
    #[arg(long)]
    running: bool,

    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        let batches = batches_of(&*queue)?;
        if self.format.is_json() {
            return self.as_json(batches).await;
        }
        let mut table = Table::new(HEADS);
        let mut after = None;
        while let Some(page) = self.page(batches, &mut after).await? {
            page.iter().for_each(|status| table.row(row(status), None));
        }
        table.print()
    }

    async fn as_json(&self, batches: &dyn BatchQueue) -> CommandResult {
        let mut records = self.format.records()?;
        let mut after = None;
        while let Some(page) = self.page(batches, &mut after).await? {
            page.iter().try_for_each(|status| records.item(&Report::of(status)))?;
        }
        records.end()
    }

    /// Reads the next page. With `--running` it has only batches that have not
    /// completed. `None` after the last page.
    async fn page(
        &self,
        batches: &dyn BatchQueue,
        after: &mut Option<BatchId>,
    ) -> CommandResult<Option<Vec<BatchStatus>>> {
        let mut page = batches.list_batches(after.as_ref(), PAGE).await?;
        let Some(last) = page.last() else { return Ok(None) };
        *after = Some(last.id.clone());
        page.retain(|status| !(self.running && status.state.is_completed()));
        Ok(Some(page))
    }
}

const HEADS: [&str; 7] =
    ["ID", "STATE", "PRIORITY", "LIMIT", "ENDED", "PIECES", "FAILED"];

fn row(status: &BatchStatus) -> [String; 7] {
    [
        printable(status.id.as_str()),
        status.state.to_string(),
        status.priority.to_string(),
        status.limit.map_or_else(|| "none".to_owned(), |limit| limit.to_string()),
        status.ended().to_string(),
        status.total.to_string(),
        status.failed.to_string(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::batch::report::tests::status;

    #[test]
    fn each_figure_of_a_batch_has_its_column() {
        let columns: Vec<_> = HEADS.into_iter().zip(row(&status())).collect();

        let expected = [
            ("ID", "nightly"),
            ("STATE", "failed"),
            ("PRIORITY", "8"),
            ("LIMIT", "6"),
            ("ENDED", "10"),
            ("PIECES", "21"),
            ("FAILED", "3"),
        ];
        assert_eq!(columns, expected.map(|(head, cell)| (head, cell.to_owned())));
    }
}
