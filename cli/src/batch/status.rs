//! `relq batch status`: the progress of a batch.

use std::fmt;

use relq::{BatchId, BatchStatus, Timestamp};
use serde::Serialize;

use super::{batches_of, known, watch::Watch};
use crate::{args::Target, failure::CommandResult, output::Format, view::time};

/// Print the progress of a batch
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// The batch
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

/// The status of a batch, as it is printed. Times are milliseconds since 1970.
#[derive(Serialize, Debug)]
pub(super) struct Report<'a> {
    id: &'a str,
    state: &'static str,
    priority: u8,
    limit: Option<u32>,
    total: u64,
    done: u64,
    failed: u64,
    dropped: u64,
    leased: u64,
    waiting: u64,
    created_at_ms: i64,
    sealed_at_ms: Option<i64>,
    completed_at_ms: Option<i64>,
}

impl<'a> Report<'a> {
    pub(super) fn of(status: &'a BatchStatus) -> Self {
        Self {
            id: status.id.as_str(),
            state: status.state.as_str(),
            priority: status.priority.level(),
            limit: status.limit.map(std::num::NonZeroU32::get),
            total: status.total,
            done: status.done,
            failed: status.failed,
            dropped: status.dropped,
            leased: status.leased,
            waiting: status.waiting,
            created_at_ms: status.created_at.unix_ms(),
            sealed_at_ms: status.sealed_at.map(Timestamp::unix_ms),
            completed_at_ms: status.completed_at.map(Timestamp::unix_ms),
        }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let moment = |ms| time(Timestamp::from_unix_ms(ms));
        writeln!(f, "batch      {}", self.id)?;
        writeln!(f, "state      {}", self.state)?;
        writeln!(f, "priority   {}", self.priority)?;
        match self.limit {
            Some(limit) => writeln!(f, "limit      {limit}")?,
            None => writeln!(f, "limit      none")?,
        }
        writeln!(f, "pieces     {}", self.total)?;
        writeln!(f, "done       {}", self.done)?;
        writeln!(f, "failed     {}", self.failed)?;
        writeln!(f, "dropped    {}", self.dropped)?;
        writeln!(f, "leased     {}", self.leased)?;
        writeln!(f, "waiting    {}", self.waiting)?;
        writeln!(f, "created    {}", moment(self.created_at_ms))?;
        if let Some(ms) = self.completed_at_ms {
            writeln!(f, "completed  {}", moment(ms))?;
        }
        Ok(())
    }
}
