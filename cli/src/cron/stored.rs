//! Finds the schedule calls of a queue, and a stored schedule that must exist.

use relq::{
    Queue,
    environment::Timestamp,
    schedule::{Schedule, ScheduleName, ScheduleQueue, ScheduleSpec, Times},
};

use crate::{
    failure::{CommandResult, Failure},
    view::time,
};

/// The schedule calls of a queue. Fails if its backend has no schedules.
pub(crate) fn schedules_of(queue: &dyn Queue) -> CommandResult<&dyn ScheduleQueue> {
    queue.schedule_queue().ok_or_else(|| {
        let why = queue.capabilities().why_no_schedules();
        Failure::Usage(format!("{why}: choose another --url"))
    })
}

/// The schedule of this name and the store's time, or the error that there is none.
pub(super) async fn known(
    queue: &dyn ScheduleQueue,
    name: &ScheduleName,
) -> CommandResult<(Schedule, Timestamp)> {
    let found = queue.schedules().await?;
    let schedule = found.schedules.into_iter().find(|it| it.name == *name);
    let schedule = schedule.ok_or_else(|| unknown(name))?;
    Ok((schedule, found.now))
}

pub(super) fn unknown(name: &ScheduleName) -> Failure {
    Failure::Failed(format!("there is no schedule {name}"))
}

/// Reads the definition of a stored schedule.
pub(super) fn read(schedule: &Schedule) -> CommandResult<ScheduleSpec> {
    ScheduleSpec::from_definition(&schedule.definition).map_err(|error| {
        Failure::Failed(format!("cannot read the schedule {}: {error}", schedule.name))
    })
}

/// The tick that a scheduler pushes next. If ticks were missed, it is the first one that
/// the schedule's policy asks for, and it is due already.
pub(super) fn next_tick(
    schedule: &Schedule,
    spec: &ScheduleSpec,
    now: Timestamp,
) -> Option<Timestamp> {
    let due = spec.due(schedule.last_tick, now);
    due.ticks.first().copied().or(due.next)
}

/// A tick as local time of the schedule's zone. `None` if that is UTC.
pub(super) fn local_time(spec: &ScheduleSpec, at: Timestamp) -> Option<String> {
    match spec.times() {
        Times::Cron(cron) if cron.zone_name() != "UTC" => Some(cron.local_time(at)),
        _ => None,
    }
}

/// A tick in UTC and, for a schedule of another zone, as local time.
pub(super) fn both_times(spec: &ScheduleSpec, at: Timestamp) -> String {
    match local_time(spec, at) {
        Some(local) => format!("{}  {local}", time(at)),
        None => time(at),
    }
}

#[cfg(test)]
mod tests {
    use relq::{
        Bytes,
        schedule::{Cron, Missed},
    };

    use super::*;

    /// When an hourly schedule ticks next, at half past the hour `now`, after its last
    /// tick at the hour `last`.
    fn next(missed: Missed, last: i64, now: i64) -> i64 {
        let hourly = Cron::new("0 * * * *").unwrap();
        let spec = ScheduleSpec::new(hourly, "poll").unwrap().missed(missed);
        let name = ScheduleName::new("poll").unwrap();
        let at = |minutes| Timestamp::from_unix_ms(minutes * 60_000);
        let schedule = Schedule::new(name, Bytes::new(), at(last * 60));
        let next = next_tick(&schedule, &spec, at(now * 60 + 30)).unwrap();
        next.unix_ms() / 3_600_000
    }

    #[test]
    fn the_next_tick_is_the_one_that_a_scheduler_pushes() {
        for missed in [Missed::Skip, Missed::Last, Missed::All] {
            assert_eq!(next(missed, 5, 5), 6, "{missed}");
            assert_eq!(next(missed, 8, 5), 9, "{missed}, and the clock was set back");
        }
        assert_eq!(next(Missed::Skip, 5, 9), 10);
        assert_eq!(next(Missed::Last, 5, 9), 9);
        assert_eq!(next(Missed::All, 5, 9), 6);
    }
}
