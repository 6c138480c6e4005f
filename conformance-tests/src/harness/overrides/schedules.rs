//! The schedule calls of a queue with overrides.

use async_trait::async_trait;
use relq_core::{
    Error, NewJob,
    schedule::{ScheduleName, ScheduleQueue, ScheduleStored, Schedules, Tick, Ticked},
};

use super::{OverriddenQueue, Right};

impl Right {
    /// Returns the schedule calls of the queue.
    ///
    /// # Panics
    /// When the queue has no schedules. Then the queue with overrides has none either.
    pub fn scheduler(&self) -> &dyn ScheduleQueue {
        self.queue.schedule_queue().expect("the healthy queue has schedules")
    }
}

#[async_trait]
impl ScheduleQueue for OverriddenQueue {
    async fn put_schedule(
        &self,
        name: &ScheduleName,
        definition: &[u8],
    ) -> Result<ScheduleStored, Error> {
        self.overrides.put_schedule(&self.right, name, definition).await
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool, Error> {
        self.right.scheduler().remove_schedule(name).await
    }

    async fn schedules(&self) -> Result<Schedules, Error> {
        self.overrides.schedules(&self.right).await
    }

    async fn push_tick(&self, tick: &Tick, job: NewJob) -> Result<Ticked, Error> {
        self.overrides.push_tick(&self.right, tick, job).await
    }
}
