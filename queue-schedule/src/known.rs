//! The schedules as the last read found them, and the ticks since. Each definition is
//! parsed once and each problem is logged once. A schedule that a read does not find is
//! forgotten.

use std::{collections::BTreeMap, sync::Arc, time::Duration};

use relq_core::{
    Bytes, Error,
    environment::Timestamp,
    schedule::{Schedule, ScheduleName, Schedules},
};

use crate::{ScheduleSpec, UnreadableDefinition, header::rfc_3339};

/// By how much a last tick must be in the future to be logged. The clocks of a master and
/// of its replica may differ by less.
const AHEAD: Duration = Duration::from_secs(1);

#[derive(Debug, Default)]
pub(crate) struct Known {
    schedules: BTreeMap<ScheduleName, Entry>,
    /// The entries of the store that are not schedules.
    unreadable: Vec<String>,
}

#[derive(Debug)]
struct Entry {
    schedule: Schedule,
    spec: Result<Arc<ScheduleSpec>, UnreadableDefinition>,
    /// The first tick that is not pushed. `None` if there is none, or if only the next
    /// read of the store can tell.
    next: Option<Timestamp>,
    is_failure_logged: bool,
    /// The last tick that was logged because it is in the future.
    ahead_logged: Option<Timestamp>,
}

/// A schedule one of whose ticks is due.
pub(crate) struct DueSchedule {
    pub(crate) schedule: Schedule,
    pub(crate) spec: Arc<ScheduleSpec>,
}

impl Known {
    /// Notes a schedule that this scheduler has stored, so that it is missed if the next
    /// read does not find it.
    pub(crate) fn stored(&mut self, name: &ScheduleName, spec: &ScheduleSpec) {
        let long_ago = Timestamp::from_unix_ms(0);
        let definition = Bytes::from(spec.to_definition());
        let entry = Entry::of(Schedule::new(name.clone(), definition, long_ago));
        self.schedules.insert(name.clone(), entry);
    }

    /// Takes over what the store has, and logs what is new and wrong.
    pub(crate) fn update(&mut self, found: Schedules) {
        let mut before = std::mem::take(&mut self.schedules);
        for schedule in found.schedules {
            let entry = match before.remove(&schedule.name) {
                Some(known) => known.updated(schedule, found.now),
                None => Entry::of(schedule).logged(found.now),
            };
            self.schedules.insert(entry.schedule.name.clone(), entry);
        }
        for schedule in before.keys() {
            tracing::warn!(
                %schedule,
                "a schedule is gone: it was removed, or the store has lost it; no \
                 scheduler pushes its jobs until it is stored again"
            );
        }
        for entry in found.unreadable.iter().filter(|it| !self.unreadable.contains(it))
        {
            tracing::warn!(entry, "an entry of the store is not a schedule");
        }
        self.unreadable = found.unreadable;
    }

    /// The schedules that have a tick to push at the time `now`.
    pub(crate) fn due(&self, now: Timestamp) -> Vec<DueSchedule> {
        let is_due = |entry: &&Entry| entry.next.is_some_and(|next| next <= now);
        let due = self.schedules.values().filter(is_due);
        let due = due.filter_map(|entry| {
            let spec = Arc::clone(entry.spec.as_ref().ok()?);
            Some(DueSchedule { schedule: entry.schedule.clone(), spec })
        });
        due.collect()
    }

    /// The first tick of all that is not pushed.
    pub(crate) fn next(&self) -> Option<Timestamp> {
        self.schedules.values().filter_map(|entry| entry.next).min()
    }

    /// Notes that the store has this tick, or a later one, as the last of a schedule.
    pub(crate) fn ticked(&mut self, name: &ScheduleName, at: Timestamp) {
        if let Some(entry) = self.schedules.get_mut(name) {
            entry.schedule.last_tick = at;
        }
    }

    /// Notes the first tick that is not pushed. With `None` the schedule has no turn
    /// until the store is read again.
    pub(crate) fn next_is(&mut self, name: &ScheduleName, next: Option<Timestamp>) {
        if let Some(entry) = self.schedules.get_mut(name) {
            entry.next = next;
        }
    }

    /// Logs that a tick of a schedule failed, once for each definition of the schedule.
    pub(crate) fn failed(&mut self, name: &ScheduleName, what: &str, error: &Error) {
        let Some(entry) = self.schedules.get_mut(name) else { return };
        if !std::mem::replace(&mut entry.is_failure_logged, true) {
            let error = error.full_message();
            tracing::error!(schedule = %name, error, "{what}");
        }
    }
}

impl Entry {
    fn of(schedule: Schedule) -> Self {
        let spec = ScheduleSpec::from_definition(&schedule.definition).map(Arc::new);
        let next =
            spec.as_ref().ok().and_then(|spec| spec.next_after(schedule.last_tick));
        Self { schedule, spec, next, is_failure_logged: false, ahead_logged: None }
    }

    /// Logs what is wrong with a schedule that was not known.
    fn logged(mut self, now: Timestamp) -> Self {
        if let Err(error) = &self.spec {
            let schedule = &self.schedule.name;
            tracing::error!(%schedule, %error, "a schedule is left alone");
        }
        self.log_last_tick_ahead(now);
        self
    }

    /// The entry after another read. A definition that cannot be read is tried again: the
    /// machine may have got its time zone meanwhile.
    fn updated(self, schedule: Schedule, now: Timestamp) -> Self {
        if schedule.definition != self.schedule.definition {
            return Self::of(schedule).logged(now);
        }
        let mut new = match self.spec {
            Ok(spec) => {
                let next = spec.next_after(schedule.last_tick);
                Self { spec: Ok(spec), schedule, next, ..self }
            }
            Err(error) => {
                let new = Self::of(schedule);
                let is_logged = new.spec.as_ref().err() == Some(&error);
                return if is_logged { new } else { new.logged(now) };
            }
        };
        new.log_last_tick_ahead(now);
        new
    }

    /// Logs, once for each tick, that the store's clock was set back behind the last tick:
    /// until the clock reaches that time again, the schedule pushes nothing.
    fn log_last_tick_ahead(&mut self, now: Timestamp) {
        let Schedule { name, last_tick, .. } = &self.schedule;
        if last_tick.since(now) > AHEAD && self.ahead_logged != Some(*last_tick) {
            tracing::warn!(
                schedule = %name,
                until = rfc_3339(*last_tick),
                "the store's clock was set back behind the last tick of a schedule, which \
                 pushes nothing until then"
            );
            self.ahead_logged = Some(*last_tick);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn found(number: u32) -> Schedules {
        let now = Timestamp::from_unix_ms(0);
        let name = ScheduleName::new(format!("schedule-{number}")).unwrap();
        let definition = Bytes::from(format!("unreadable {number}"));
        Schedules::new(now, vec![Schedule::new(name, definition, now)])
            .with_unreadable(vec![format!("entry {number}")])
    }

    /// A definition that could not be read, such as one whose time zone the machine lacked,
    /// is tried again at the next read of the store.
    #[test]
    fn what_could_not_be_read_is_tried_again() {
        let now = Timestamp::from_unix_ms(0);
        let every = crate::Every::new(Duration::from_secs(10)).unwrap();
        let definition = ScheduleSpec::new(every, "poll").unwrap().to_definition();
        let name = ScheduleName::new("poll").unwrap();
        let schedule = Schedule::new(name, definition.into(), now);
        let error = ScheduleSpec::from_definition(b"unreadable").unwrap_err();
        let entry =
            Entry { spec: Err(error), next: None, ..Entry::of(schedule.clone()) };

        let entry = entry.updated(schedule, now);

        assert!(entry.spec.is_ok());
        assert_eq!(entry.next, Some(Timestamp::from_unix_ms(10_000)));
    }

    /// A queue whose schedules change all the time costs a scheduler no more and more
    /// memory.
    #[test]
    fn what_a_read_does_not_find_is_forgotten() {
        let mut known = Known::default();
        (0..100).for_each(|number| known.update(found(number)));

        let names: Vec<_> = known.schedules.keys().map(ScheduleName::as_str).collect();
        assert_eq!(names, ["schedule-99"]);
        assert_eq!(known.unreadable, ["entry 99"]);
    }
}
