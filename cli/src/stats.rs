//! `relq stats`: prints how many jobs are in each state.

use std::fmt;

use relq::Stats;
use serde::Serialize;

use crate::{failure::CommandResult, output::Format, target::Target};

/// Print how many jobs are in each state
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let stats = target.open_existing().await?.stats().await?;
        self.format.show(&Report::new(target.queue.as_str(), &stats))
    }
}

#[derive(Serialize)]
struct Report<'a> {
    queue: &'a str,
    ready: u64,
    scheduled: u64,
    leased: u64,
    overdue: u64,
    dead: u64,
    finished: u64,
    discarded: u64,
    cancelled: u64,
    paused: bool,
    next_due_in_ms: Option<u128>,
}

impl<'a> Report<'a> {
    fn new(queue: &'a str, stats: &Stats) -> Self {
        Self {
            queue,
            ready: stats.ready,
            scheduled: stats.scheduled,
            leased: stats.leased,
            overdue: stats.overdue,
            dead: stats.dead,
            finished: stats.finished,
            discarded: stats.discarded,
            cancelled: stats.cancelled,
            paused: stats.paused,
            next_due_in_ms: stats.next_due_in.map(|due| due.as_millis()),
        }
    }
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paused = if self.paused { " (paused)" } else { "" };
        writeln!(f, "queue      {}{paused}", self.queue)?;
        writeln!(f, "ready      {}", self.ready)?;
        match self.next_due_in_ms {
            Some(ms) => {
                writeln!(f, "scheduled  {} (next in {ms} ms)", self.scheduled)?;
            }
            None => writeln!(f, "scheduled  {}", self.scheduled)?,
        }
        match self.overdue {
            0 => writeln!(f, "leased     {}", self.leased)?,
            overdue => writeln!(f, "leased     {} ({overdue} overdue)", self.leased)?,
        }
        writeln!(f, "dead       {}", self.dead)?;
        writeln!(f, "finished   {}", self.finished)?;
        writeln!(f, "discarded  {}", self.discarded)?;
        writeln!(f, "cancelled  {}", self.cancelled)
    }
}
