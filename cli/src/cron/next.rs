//! `relq cron next`: prints the next ticks of a schedule.

use std::num::NonZeroU32;

use relq::{
    environment::Timestamp,
    schedule::{ScheduleName, ScheduleSpec},
};
use serde::Serialize;

use super::stored::{both_times, known, local_time, read, schedules_of};
use crate::{
    failure::{CommandResult, unless_closed},
    format::Format,
    output::Output,
    target::Target,
    values::count,
};

/// Print the next ticks of a schedule, from now on
///
/// Each line has the time in UTC and, for a schedule of another zone, the local time. It
/// shows what happens on the days on which the clocks change.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// The name of the schedule
    name: ScheduleName,

    /// How many ticks to print
    #[arg(short = 'n', long, alias = "count", value_name = "N", value_parser = count,
        default_value = "5")]
    limit: NonZeroU32,

    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(super) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        let (schedule, now) = known(schedules_of(&*queue)?, &self.name).await?;
        let spec = read(&schedule)?;
        let next = |at: &Timestamp| spec.next_after(*at);
        let first = spec.next_after(now.max(schedule.last_tick));
        let ticks = std::iter::successors(first, next).take(self.limit.get() as usize);
        unless_closed(if self.format.is_json() {
            print_json(self.format, &spec, ticks)
        } else {
            print_lines(&spec, ticks)
        })
    }
}

fn print_lines(
    spec: &ScheduleSpec,
    mut ticks: impl Iterator<Item = Timestamp>,
) -> CommandResult {
    let mut out = Output::new();
    ticks.try_for_each(|at| out.text(&format!("{}\n", both_times(spec, at))))?;
    out.flush()
}

fn print_json(
    format: Format,
    spec: &ScheduleSpec,
    ticks: impl Iterator<Item = Timestamp>,
) -> CommandResult {
    let row =
        |at: Timestamp| Row { tick_ms: at.unix_ms(), local: local_time(spec, at) };
    format.print_records(ticks.map(row))
}

/// A tick as JSON: in milliseconds since 1970, and as local time of another zone.
#[derive(Serialize)]
struct Row {
    tick_ms: i64,
    local: Option<String>,
}
