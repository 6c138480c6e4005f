//! `relq stats`: prints how many jobs are in each state.

use std::fmt;

use relq::Stats;
use serde::Serialize;

use crate::{
    failure::{CommandResult, unless_closed},
    format::Format,
    output::Output,
    printable::printable,
    table::{Table, line_width},
    target::Target,
};

/// Print how many jobs are in each state
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print the figures of each part of a queue of several parts
    #[arg(long)]
    by_part: bool,

    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(crate) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        if self.by_part {
            let parts = queue.stats_by_part().await?;
            let parts = reports(target.queue.as_str(), &parts);
            return unless_closed(self.print(&parts));
        }
        let stats = queue.stats().await?;
        self.format.show(&Report::new(target.queue.as_str(), &stats))
    }

    fn print(&self, parts: &[Report<String>]) -> CommandResult {
        if self.format.is_json() {
            let mut records = self.format.records()?;
            parts.iter().try_for_each(|part| records.item(part))?;
            return records.end();
        }
        let mut out = Output::new();
        out.text(&table(parts).render(line_width()))?;
        out.flush()
    }
}

#[derive(Serialize)]
struct Report<Q> {
    queue: Q,
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
    oldest_ready_age_ms: Option<u128>,
}

impl<Q> Report<Q> {
    fn new(queue: Q, stats: &Stats) -> Self {
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
            oldest_ready_age_ms: stats.oldest_ready_age.map(|age| age.as_millis()),
        }
    }
}

/// The figures of each part of a queue.
fn reports(queue: &str, parts: &[Stats]) -> Vec<Report<String>> {
    let named = parts.iter().enumerate().map(|(number, stats)| {
        let name = match number {
            0 => queue.to_owned(),
            other => format!("{queue}:{other}"),
        };
        Report::new(name, stats)
    });
    named.collect()
}

fn table(parts: &[Report<String>]) -> Table<11> {
    let mut table = Table::new([
        "PART",
        "READY",
        "OLDEST",
        "SCHEDULED",
        "LEASED",
        "OVERDUE",
        "DEAD",
        "FINISHED",
        "DISCARDED",
        "CANCELLED",
        "",
    ]);
    for part in parts {
        let paused = if part.paused { "paused" } else { "" };
        let oldest = part.oldest_ready_age_ms.map(|ms| format!("{ms} ms"));
        let cells = [
            printable(&part.queue),
            part.ready.to_string(),
            oldest.unwrap_or_default(),
            part.scheduled.to_string(),
            part.leased.to_string(),
            part.overdue.to_string(),
            part.dead.to_string(),
            part.finished.to_string(),
            part.discarded.to_string(),
            part.cancelled.to_string(),
            paused.to_owned(),
        ];
        table.row(cells, None);
    }
    table
}

impl<Q: fmt::Display> fmt::Display for Report<Q> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let paused = if self.paused { " (paused)" } else { "" };
        writeln!(f, "queue      {}{paused}", self.queue)?;
        match self.oldest_ready_age_ms {
            Some(ms) => {
                writeln!(f, "ready      {} (oldest for {ms} ms)", self.ready)?;
            }
            None => writeln!(f, "ready      {}", self.ready)?,
        }
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
