//! `relq stats`: prints how many jobs are in each state.

use std::{fmt, time::Duration};

use relq::Stats;
use serde::Serialize;

use crate::{
    failure::{CommandResult, unless_closed},
    format::Format,
    printable::printable,
    table::Table,
    target::Target,
    values::age,
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
            return self.format.print_records(parts);
        }
        table(parts).print()
    }
}

/// A queue and its figures.
#[derive(Serialize)]
struct Report<Q> {
    queue: Q,
    #[serde(flatten)]
    figures: Figures,
}

/// The figures of a queue, as JSON has them.
#[derive(Serialize)]
pub(crate) struct Figures {
    pub(crate) ready: u64,
    pub(crate) scheduled: u64,
    pub(crate) leased: u64,
    overdue: u64,
    pub(crate) dead: u64,
    finished: u64,
    discarded: u64,
    cancelled: u64,
    pub(crate) paused: bool,
    next_due_in_ms: Option<u128>,
    oldest_ready_age_ms: Option<u128>,
}

impl Figures {
    /// How long the oldest ready job has been waiting.
    pub(crate) fn oldest_ready(&self) -> Option<Duration> {
        self.oldest_ready_age_ms.map(from_ms)
    }

    /// How long it is until the next scheduled job is due.
    fn next_due(&self) -> Option<Duration> {
        self.next_due_in_ms.map(from_ms)
    }
}

fn from_ms(ms: u128) -> Duration {
    Duration::from_millis(ms.try_into().unwrap_or(u64::MAX))
}

impl From<&Stats> for Figures {
    fn from(stats: &Stats) -> Self {
        Self {
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

impl<Q> Report<Q> {
    fn new(queue: Q, stats: &Stats) -> Self {
        Self { queue, figures: stats.into() }
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
    for Report { queue, figures: part } in parts {
        let paused = if part.paused { "paused" } else { "" };
        let oldest = part.oldest_ready().map(age);
        let cells = [
            printable(queue),
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
        let Self { queue, figures } = self;
        let paused = if figures.paused { " (paused)" } else { "" };
        writeln!(f, "queue      {queue}{paused}")?;
        match figures.oldest_ready() {
            Some(oldest) => {
                let oldest = age(oldest);
                writeln!(f, "ready      {} (oldest for {oldest})", figures.ready)?;
            }
            None => writeln!(f, "ready      {}", figures.ready)?,
        }
        match figures.next_due() {
            Some(due) => {
                let due = age(due);
                writeln!(f, "scheduled  {} (next in {due})", figures.scheduled)?;
            }
            None => writeln!(f, "scheduled  {}", figures.scheduled)?,
        }
        match figures.overdue {
            0 => writeln!(f, "leased     {}", figures.leased)?,
            overdue => {
                writeln!(f, "leased     {} ({overdue} overdue)", figures.leased)?;
            }
        }
        writeln!(f, "dead       {}", figures.dead)?;
        writeln!(f, "finished   {}", figures.finished)?;
        writeln!(f, "discarded  {}", figures.discarded)?;
        writeln!(f, "cancelled  {}", figures.cancelled)
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// Statistics of which no two numbers are equal.
    fn stats() -> Stats {
        let mut stats = Stats::new();
        (stats.ready, stats.scheduled, stats.leased) = (1, 2, 3);
        (stats.overdue, stats.dead) = (4, 5);
        (stats.finished, stats.discarded, stats.cancelled) = (6, 7, 8);
        stats.paused = true;
        stats.next_due_in = Some(Duration::from_secs(9));
        stats.oldest_ready_age = Some(Duration::from_secs(10));
        stats
    }

    #[test]
    fn each_figure_has_its_field_in_json() {
        let json = serde_json::to_value(Report::new("mail", &stats())).unwrap();

        let expected = json!({
            "queue": "mail",
            "ready": 1,
            "scheduled": 2,
            "leased": 3,
            "overdue": 4,
            "dead": 5,
            "finished": 6,
            "discarded": 7,
            "cancelled": 8,
            "paused": true,
            "next_due_in_ms": 9000,
            "oldest_ready_age_ms": 10000,
        });
        assert_eq!(json, expected);
    }

    #[test]
    fn each_figure_has_its_line() {
        let lines = Report::new("mail", &stats()).to_string();

        let expected = "\
            queue      mail (paused)\n\
            ready      1 (oldest for 10s)\n\
            scheduled  2 (next in 9s)\n\
            leased     3 (4 overdue)\n\
            dead       5\n\
            finished   6\n\
            discarded  7\n\
            cancelled  8\n";
        assert_eq!(lines, expected);
    }

    #[test]
    fn each_figure_of_a_part_has_its_column() {
        let table = table(&reports("mail", &[Stats::new(), stats()])).render(200);

        let row = table.lines().last().unwrap();
        let cells: Vec<_> = row.split_whitespace().collect();
        let expected = "mail:1 1 10s 2 3 4 5 6 7 8 paused";
        assert_eq!(cells.join(" "), expected);
    }
}
