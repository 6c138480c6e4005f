//! `relq cron list`: prints the schedules of a queue.

use relq::{
    environment::Timestamp,
    schedule::{Schedule, ScheduleSpec, Schedules, UnreadableDefinition},
};
use serde::Serialize;
use serde_json::Value;

use super::stored::{next_tick, schedules_of};
use crate::{
    failure::{CommandResult, unless_closed},
    format::Format,
    message::say,
    printable::printable,
    table::Table,
    target::Target,
    view::time,
};

/// List the schedules of the queue, in the order of their names
///
/// LAST TICK is the last tick that was pushed or, before the first, when the schedule was
/// stored or changed. NEXT TICK is the one that a scheduler pushes next; it is in the past
/// if no scheduler runs, and ticks were missed that the schedule makes up for. Both are in
/// UTC. An entry among the schedules that is not a schedule is named on standard error.
#[derive(clap::Args, Debug)]
pub(super) struct Args {
    #[command(flatten)]
    format: Format,
}

impl Args {
    pub(super) async fn run(self, target: &Target) -> CommandResult {
        let queue = target.open_existing().await?;
        let found = schedules_of(&*queue)?.schedules().await?;
        for entry in &found.unreadable {
            say(&format!("relq: not a schedule: {}", printable(entry)));
        }
        unless_closed(if self.format.is_json() {
            print_json(self.format, &found)
        } else {
            print_table(&found)
        })
    }
}

fn print_table(found: &Schedules) -> CommandResult {
    let mut table = Table::new(["NAME", "TIMES", "MISSED", "LAST TICK", "NEXT TICK"]);
    for schedule in &found.schedules {
        let spec = ScheduleSpec::from_definition(&schedule.definition);
        let note = spec.as_ref().err().map(|error| printable(&error.to_string()));
        table.row(cells(schedule, &spec, found.now), note);
    }
    table.print()
}

fn cells(
    schedule: &Schedule,
    spec: &Result<ScheduleSpec, UnreadableDefinition>,
    now: Timestamp,
) -> [String; 5] {
    let (name, last) = (schedule.name.to_string(), time(schedule.last_tick));
    match spec {
        Ok(spec) => [
            name,
            printable(&spec.times().to_string()),
            spec.missed_ticks().to_string(),
            last,
            next_tick(schedule, spec, now).map_or_else(|| "never".to_owned(), time),
        ],
        Err(_) => [name, "?".to_owned(), "?".to_owned(), last, "?".to_owned()],
    }
}

fn print_json(format: Format, found: &Schedules) -> CommandResult {
    let schedules = found.schedules.iter();
    format.print_records(schedules.map(|schedule| Row::of(schedule, found.now)))
}

/// A schedule as JSON. `definition` is as it is stored, and null if it is not JSON;
/// `error` says why it cannot be read. Times are milliseconds since 1970.
#[derive(Serialize)]
struct Row<'a> {
    name: &'a str,
    last_tick_ms: i64,
    next_tick_ms: Option<i64>,
    error: Option<String>,
    definition: Value,
}

impl<'a> Row<'a> {
    fn of(schedule: &'a Schedule, now: Timestamp) -> Self {
        let spec = ScheduleSpec::from_definition(&schedule.definition);
        let next = spec.as_ref().ok().and_then(|spec| next_tick(schedule, spec, now));
        Self {
            name: schedule.name.as_str(),
            last_tick_ms: schedule.last_tick.unix_ms(),
            next_tick_ms: next.map(Timestamp::unix_ms),
            error: spec.err().map(|error| error.to_string()),
            definition: serde_json::from_slice(&schedule.definition)
                .unwrap_or_default(),
        }
    }
}

#[cfg(test)]
mod tests {
    use relq::schedule::{Cron, ScheduleName};
    use serde_json::json;

    use super::*;

    fn at(minutes: i64) -> Timestamp {
        Timestamp::from_unix_ms(minutes * 60_000)
    }

    /// An hourly schedule whose last tick was at 5:00.
    fn hourly() -> Schedule {
        let cron = Cron::new("0 * * * *").unwrap();
        let spec = ScheduleSpec::new(cron, "poll").unwrap();
        let name = ScheduleName::new("poll").unwrap();
        Schedule::new(name, spec.to_definition().into(), at(5 * 60))
    }

    #[test]
    fn each_property_of_a_schedule_has_its_cell() {
        let schedule = hourly();
        let spec = ScheduleSpec::from_definition(&schedule.definition);

        let cells = cells(&schedule, &spec, at(5 * 60 + 30));

        let expected = [
            "poll",
            "0 * * * * UTC",
            "last",
            "1970-01-01T05:00:00.000Z",
            "1970-01-01T06:00:00.000Z",
        ];
        assert_eq!(cells, expected);
    }

    #[test]
    fn each_property_of_a_schedule_has_its_field_in_json() {
        let schedule = hourly();

        let json = Row::of(&schedule, at(5 * 60 + 30));

        let mut json = serde_json::to_value(json).unwrap();
        assert!(
            json["definition"].take().is_object(),
            "the definition is as it is stored"
        );
        let expected = json!({
            "name": "poll", "last_tick_ms": 18_000_000, "next_tick_ms": 21_600_000,
            "error": null, "definition": null,
        });
        assert_eq!(json, expected);
    }
}
