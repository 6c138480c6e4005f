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
    let backend = queue.capabilities().backend;
    queue.schedule_queue().ok_or_else(|| {
        Failure::Usage(format!(
            "the backend {backend} has no schedules: choose another --url"
        ))
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

/// The next tick that has not been pushed: in the past if no scheduler runs.
pub(super) fn next_tick(schedule: &Schedule, spec: &ScheduleSpec) -> Option<Timestamp> {
    spec.next_after(schedule.last_tick)
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
