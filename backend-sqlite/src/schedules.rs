//! Schedules: rows of their own. The job of a tick is stored and the tick recorded in one
//! transaction (R28).

use async_trait::async_trait;
use relq_core::{
    Bytes, Error, NewJob, ReliableQueue as _,
    environment::Timestamp,
    error::Operation,
    schedule::{ScheduleName, ScheduleQueue, ScheduleStored, Schedules, Tick, Ticked},
};

use crate::call::Call;
use crate::failure::Failure;
use crate::push::{Push, Target};
use crate::queue::SqliteQueue;
use crate::statements::Entry;
use crate::store::Store;

/// How many schedules one transaction reads. With the largest definitions they are about
/// a mebibyte.
const PAGE: u32 = 16;

struct Put {
    name: ScheduleName,
    definition: Bytes,
}

impl Call for Put {
    type Answer = ScheduleStored;

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<ScheduleStored>, Failure> {
        let found = store.find_schedule(&self.name)?;
        let is_same =
            found.is_some_and(|(definition, _)| definition == self.definition);
        Ok(is_same.then_some(ScheduleStored::Unchanged))
    }

    fn run(&self, store: &Store<'_>) -> Result<ScheduleStored, Failure> {
        let found = store.find_schedule(&self.name)?;
        let (stored, last_tick) = match found {
            Some((definition, _)) if definition == self.definition => {
                return Ok(ScheduleStored::Unchanged);
            }
            // If the clock was set back, ticks after `now` may have been pushed already.
            Some((_, last)) => (ScheduleStored::Replaced, last.max(store.now)),
            None => (ScheduleStored::Created, store.now),
        };
        store.put_schedule(&self.name, &self.definition, last_tick)?;
        Ok(stored)
    }
}

struct Remove {
    name: ScheduleName,
}

impl Call for Remove {
    type Answer = bool;

    fn run(&self, store: &Store<'_>) -> Result<bool, Failure> {
        store.remove_schedule(&self.name)
    }
}

/// Reads one page of the schedules, and the time of the store.
struct Read {
    last: Option<Vec<u8>>,
}

impl Call for Read {
    type Answer = (Timestamp, Vec<Entry>);

    const LOOKS_FIRST: bool = true;

    fn look(&self, store: &Store<'_>) -> Result<Option<Self::Answer>, Failure> {
        self.run(store).map(Some)
    }

    fn run(&self, store: &Store<'_>) -> Result<Self::Answer, Failure> {
        Ok((store.now, store.schedule_page(self.last.as_deref(), PAGE)?))
    }
}

struct PushTick {
    tick: Tick,
    push: Push,
}

impl Call for PushTick {
    type Answer = Ticked;

    fn bytes(&self) -> usize {
        self.push.bytes()
    }

    fn run(&self, store: &Store<'_>) -> Result<Ticked, Failure> {
        let Tick { name, definition, at } = &self.tick;
        let last_tick = match store.find_schedule(name)? {
            Some((found, last_tick)) if found == *definition => last_tick,
            _ => return Ok(Ticked::Changed),
        };
        if *at <= last_tick {
            return Ok(Ticked::NotLater);
        }
        if *at > store.now {
            return Ok(Ticked::NotDue(at.since(store.now)));
        }
        store.record_tick(name, *at)?;
        let mut pushed = self.push.store_all(store, Target::Queue)?;
        Ok(Ticked::Pushed(pushed.pop().expect("a result for each job")))
    }
}

#[async_trait]
impl ScheduleQueue for SqliteQueue {
    async fn put_schedule(
        &self,
        name: &ScheduleName,
        definition: &[u8],
    ) -> Result<ScheduleStored, Error> {
        self.capabilities().check_schedule(definition)?;
        let definition = Bytes::copy_from_slice(definition);
        let call = Put { name: name.clone(), definition };
        self.db_thread().call(call).await.map_err(|it| it.at(Operation::PutSchedule))
    }

    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool, Error> {
        let call = Remove { name: name.clone() };
        self.db_thread().call(call).await.map_err(|it| it.at(Operation::RemoveSchedule))
    }

    async fn schedules(&self) -> Result<Schedules, Error> {
        self.read_schedules().await.map_err(|it| it.at(Operation::ReadSchedules))
    }

    async fn push_tick(&self, tick: &Tick, job: NewJob) -> Result<Ticked, Error> {
        self.capabilities().check_tick(&job)?;
        let push = Push { jobs: vec![job], token: None };
        let call = PushTick { tick: tick.clone(), push };
        self.db_thread().call(call).await.map_err(|it| it.at(Operation::PushTick))
    }
}

impl SqliteQueue {
    async fn read_schedules(&self) -> Result<Schedules, Failure> {
        let (thread, mut last) = (self.reading_thread().await?, None);
        let (mut found, mut unreadable) = (Vec::new(), Vec::new());
        loop {
            let (now, page) = thread.call(Read { last }).await?;
            let is_last = page.len() < PAGE as usize;
            last = page.last().map(|entry| entry.name.clone());
            for entry in page {
                match entry.schedule() {
                    Ok(schedule) => found.push(schedule),
                    Err(what) => unreadable.push(what),
                }
            }
            if is_last {
                return Ok(Schedules::new(now, found).with_unreadable(unreadable));
            }
        }
    }
}
