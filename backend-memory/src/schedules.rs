//! The schedules of a queue in memory (R28).

use async_trait::async_trait;
use relq_core::{
    Bytes, Error, JobId, NewJob,
    environment::Timestamp,
    schedule::{
        Schedule, ScheduleName, ScheduleQueue, ScheduleStored, Schedules, Tick, Ticked,
    },
};

use crate::{
    queue::{CAPABILITIES, MemoryQueue},
    state::State,
};

#[async_trait]
impl ScheduleQueue for MemoryQueue {
    async fn put_schedule(
        &self,
        name: &ScheduleName,
        definition: &[u8],
    ) -> Result<ScheduleStored, Error> {
        CAPABILITIES.check_schedule(definition)?;
        let definition = Bytes::copy_from_slice(definition);
        Ok(self.step(|state, now| {
            let (stored, last_tick) = match state.schedules.get(name) {
                Some(found) if found.definition == definition => {
                    return ScheduleStored::Unchanged;
                }
                // If the clock was set back, ticks after `now` may have been pushed already.
                Some(found) => (ScheduleStored::Replaced, found.last_tick.max(now)),
                None => (ScheduleStored::Created, now),
            };
            let new = Schedule::new(name.clone(), definition, last_tick);
            state.schedules.insert(name.clone(), new);
            stored
        }))
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool, Error> {
        Ok(self.step(|state, _| state.schedules.remove(name).is_some()))
    }

    async fn schedules(&self) -> Result<Schedules, Error> {
        Ok(self.step(|state, now| {
            Schedules::new(now, state.schedules.values().cloned().collect())
        }))
    }

    async fn push_tick(&self, tick: &Tick, job: NewJob) -> Result<Ticked, Error> {
        CAPABILITIES.check_tick(&job)?;
        let id = job.id.clone().unwrap_or_else(|| self.new_id());
        Ok(self.step(|state, now| state.push_tick(tick, (id, job), now)))
    }
}

impl State {
    fn push_tick(
        &mut self,
        tick: &Tick,
        (id, job): (JobId, NewJob),
        now: Timestamp,
    ) -> Ticked {
        let found = self.schedules.get_mut(&tick.name);
        let Some(schedule) = found.filter(|it| it.definition == tick.definition) else {
            return Ticked::Changed;
        };
        if tick.at <= schedule.last_tick {
            return Ticked::NotLater;
        }
        if tick.at > now {
            return Ticked::NotDue(tick.at.since(now));
        }
        schedule.last_tick = tick.at;
        self.promote(usize::MAX, now);
        Ticked::Pushed(self.push_one(id, job, now))
    }
}
