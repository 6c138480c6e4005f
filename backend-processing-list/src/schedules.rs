//! The calls on the schedules of a queue (R28).

use async_trait::async_trait;
use relq_core::{
    Error, NewJob, ReliableQueue as _,
    schedule::{ScheduleName, ScheduleQueue, ScheduleStored, Schedules, Tick, Ticked},
};
use relq_redis::bookkeeping;

use crate::ProcessingListQueue;

#[async_trait]
impl ScheduleQueue for ProcessingListQueue {
    async fn put_schedule(
        &self,
        name: &ScheduleName,
        definition: &[u8],
    ) -> Result<ScheduleStored, Error> {
        self.capabilities().check_schedule(definition)?;
        self.store.bookkeeping.put_schedule(name, definition).await
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool, Error> {
        self.store.bookkeeping.remove_schedule(name).await
    }

    async fn schedules(&self) -> Result<Schedules, Error> {
        self.store.bookkeeping.schedules().await
    }

    async fn push_tick(&self, tick: &Tick, job: NewJob) -> Result<Ticked, Error> {
        bookkeeping::push_tick(self, tick, job).await
    }
}
