//! `relq cron add`: stores a schedule.

use std::{
    ffi::{OsStr, OsString},
    fmt,
    os::unix::ffi::OsStringExt,
    time::Duration,
};

use relq::{
    Bytes,
    environment::Timestamp,
    schedule::{
        Cron, Every, InvalidSpec, Missed, ScheduleName, ScheduleSpec, ScheduleStored,
        Times,
    },
};
use serde::Serialize;

use super::stored::{both_times, known, next_tick, schedules_of};
use crate::{
    failure::{CommandResult, Failure},
    format::Format,
    job_options::JobOptions,
    target::Target,
    values::positive_duration,
};

/// Store a schedule, in place of one with this name
///
/// The expression is quoted and has five fields: minute, hour, day of the month, month,
/// day of the week; or six, with the second first. @hourly, @daily, @weekly, @monthly and
/// @yearly are expressions, too. With --every there is no expression.
///
/// The schedule ticks from now on. Storing the same schedule again changes nothing. A
/// changed one ticks by its new times only: schedulers that still know the old ones push
/// no more of them.
///
/// On the days on which the clocks change, an expression whose hour field has no * ticks
/// once for each local time: a skipped one at the first moment after the gap, and a
/// repeated one when it happens first. With a * it ticks whenever the local time matches.
#[derive(clap::Args, Debug)]
#[command(override_usage = USAGE)]
pub(super) struct Args {
    /// The name of the schedule
    name: ScheduleName,

    /// The cron expression, as one word, and the payload of the jobs; with --every only
    /// the payload
    #[arg(value_name = "EXPRESSION> <PAYLOAD", required = true)]
    words: Vec<OsString>,

    /// The time zone of the expression [default: UTC]
    #[arg(long, value_name = "ZONE", conflicts_with = "every")]
    zone: Option<String>,

    /// Tick in this interval, such as 5m, counted from 1970
    #[arg(long, value_name = "DURATION", value_parser = positive_duration)]
    every: Option<Duration>,

    /// What to do with ticks that are more than a minute late, because no scheduler ran:
    /// push none (skip), the last one (last) or all
    #[arg(long, value_name = "POLICY", default_value_t)]
    missed: Missed,

    #[command(flatten)]
    options: JobOptions,

    #[command(flatten)]
    format: Format,
}

const USAGE: &str = "\
relq cron add [OPTIONS] <NAME> <EXPRESSION> <PAYLOAD>
       relq cron add [OPTIONS] --every <DURATION> <NAME> <PAYLOAD>";

impl Args {
    pub(super) async fn run(self, target: &Target) -> CommandResult {
        let spec = self.spec()?;
        let queue = target.open().await?;
        let schedules = schedules_of(&*queue)?;
        let stored = spec.put(&*queue, &self.name).await?;
        let (schedule, now) = known(schedules, &self.name).await?;
        let next = next_tick(&schedule, &spec, now);
        let next_at = next.map(|at| both_times(&spec, at));
        let stored = match stored {
            ScheduleStored::Created => "created",
            ScheduleStored::Replaced => "replaced",
            ScheduleStored::Unchanged => "unchanged",
        };
        let next_tick_ms = next.map(Timestamp::unix_ms);
        self.format.show(&Report {
            name: self.name.as_str(),
            stored,
            next_tick_ms,
            next_at,
        })
    }

    fn spec(&self) -> CommandResult<ScheduleSpec> {
        let (times, payload) = match (self.every, &*self.words) {
            (None, [expression, payload]) => (self.cron(expression)?, payload),
            (Some(every), [payload]) => {
                (Every::new(every).map_err(|error| usage(&error))?.into(), payload)
            }
            (None, _) => {
                return Err(Failure::Usage(
                    "give the cron expression as one word in quotes, and one payload \
                     after it; or give --every and one payload"
                        .to_owned(),
                ));
            }
            (Some(_), _) => {
                return Err(Failure::Usage(
                    "with --every there is no cron expression: give one payload alone"
                        .to_owned(),
                ));
            }
        };
        self.options.check()?;
        let job = self.options.job(Bytes::from(payload.clone().into_vec()));
        let spec = ScheduleSpec::new(times, job).map_err(|error| usage(&error))?;
        Ok(spec.missed(self.missed))
    }

    fn cron(&self, expression: &OsStr) -> CommandResult<Times> {
        let cron =
            Cron::new(&expression.to_string_lossy()).map_err(|error| usage(&error))?;
        let zone = self.zone.as_deref().unwrap_or("UTC");
        Ok(cron.zone(zone).map_err(|error| usage(&error))?.into())
    }
}

fn usage(error: &InvalidSpec) -> Failure {
    Failure::Usage(error.to_string())
}

#[derive(Serialize)]
struct Report<'a> {
    name: &'a str,
    stored: &'static str,
    next_tick_ms: Option<i64>,
    #[serde(skip)]
    next_at: Option<String>,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { name, stored, next_at, .. } = self;
        match next_at {
            Some(next) => writeln!(f, "{name} {stored}, next tick {next}"),
            None => writeln!(f, "{name} {stored}, no next tick"),
        }
    }
}
