//! The schedules that a scheduler has read, so that each definition is parsed once and
//! each problem is logged once.

use std::{collections::BTreeMap, sync::Arc};

use relq_core::{Bytes, Error, schedule::Schedule, schedule::ScheduleName};

use crate::ScheduleSpec;

#[derive(Debug, Default)]
pub(crate) struct Known(BTreeMap<ScheduleName, Entry>);

#[derive(Debug)]
struct Entry {
    definition: Bytes,
    /// `None` for a definition that cannot be read.
    spec: Option<Arc<ScheduleSpec>>,
    is_refusal_logged: bool,
}

impl Known {
    /// Forgets the schedules that were removed.
    pub(crate) fn keep_only(&mut self, schedules: &[Schedule]) {
        let is_there = |name: &ScheduleName| {
            schedules.binary_search_by(|schedule| schedule.name.cmp(name)).is_ok()
        };
        self.0.retain(|name, _| is_there(name));
    }

    /// Reads the definition of a schedule. `None` if it cannot be read: the schedule is
    /// left to schedulers of another version.
    pub(crate) fn read(&mut self, schedule: &Schedule) -> Option<Arc<ScheduleSpec>> {
        let known = self.0.get(&schedule.name);
        if known.is_none_or(|known| known.definition != schedule.definition) {
            self.0.insert(schedule.name.clone(), Entry::of(schedule));
        }
        self.0[&schedule.name].spec.clone()
    }

    /// Logs that the store refuses the jobs of a schedule, once for each definition.
    pub(crate) fn refused(&mut self, schedule: &Schedule, error: &Error) {
        let Some(entry) = self.0.get_mut(&schedule.name) else { return };
        if !std::mem::replace(&mut entry.is_refusal_logged, true) {
            let (schedule, error) = (&schedule.name, error.full_message());
            tracing::error!(%schedule, error, "the job of a schedule is refused");
        }
    }
}

impl Entry {
    fn of(schedule: &Schedule) -> Self {
        let spec = ScheduleSpec::from_definition(&schedule.definition);
        let spec = spec.inspect_err(|error| {
            let schedule = &schedule.name;
            tracing::error!(%schedule, %error, "a schedule is left alone");
        });
        Self {
            definition: schedule.definition.clone(),
            spec: spec.ok().map(Arc::new),
            is_refusal_logged: false,
        }
    }
}
