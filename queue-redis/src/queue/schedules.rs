//! The calls on the schedules of a queue (R28).

use async_trait::async_trait;
use relq_core::{
    Error, NewJob,
    schedule::{ScheduleName, ScheduleQueue, ScheduleStored, Schedules, Tick, Ticked},
};

use super::RedisQueue;
use crate::{bookkeeping, pattern::Pattern};

#[async_trait]
impl<P: Pattern> ScheduleQueue for RedisQueue<P> {
    async fn put_schedule(
        &self,
        name: &ScheduleName,
        definition: &[u8],
    ) -> Result<ScheduleStored, Error> {
        P::capabilities().check_schedule(definition)?;
        self.pattern.bookkeeping().put_schedule(name, definition).await
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool, Error> {
        self.pattern.bookkeeping().remove_schedule(name).await
    }

    async fn schedules(&self) -> Result<Schedules, Error> {
        self.pattern.bookkeeping().schedules().await
    }

    async fn push_tick(&self, tick: &Tick, job: NewJob) -> Result<Ticked, Error> {
        bookkeeping::push_tick(self, tick, job).await
    }
}
