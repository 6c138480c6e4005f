//! Schedules: jobs that are pushed at set times, each time once (R28).

use std::{fmt, str::FromStr, sync::Arc, time::Duration};

use async_trait::async_trait;

use crate::{
    Bytes, Error, NewJob, ReliableQueue,
    capabilities::Capabilities,
    environment::Timestamp,
    error::{InvalidName, Operation},
    name::{check_text, checked_text},
    outcome::Pushed,
};

checked_text! {
    /// The name of a schedule, which no other schedule of the queue has: 1 to 64
    /// characters of `A-Z a-z 0-9 . _ -`.
    ScheduleName, "the schedule name", 64, |text| {
        if text.bytes().all(|b| b.is_ascii_alphanumeric() || b"._-".contains(&b)) {
            Ok(())
        } else {
            Err(InvalidName::new("the schedule name", "may hold only A-Z a-z 0-9 . _ -"))
        }
    }
}

/// A queue that stores schedules, and pushes the job of each tick once (R28).
///
/// A schedule has a name, a definition, and its last tick. The store does not read the
/// definition: a scheduler computes from it when the next tick is due and which job it
/// pushes. Any number of schedulers may do so at the same time, on any machines, without
/// a leader: [`push_tick`](Self::push_tick) pushes the job and records the tick in one
/// step, and refuses a tick that is not later than the last one.
///
/// The crate `relq-schedule` has such a scheduler, for cron expressions and intervals.
/// [`ReliableQueue::schedule_queue`] returns this trait for a queue of any type.
///
/// ```
/// use relq_core::schedule::{ScheduleQueue, Tick, Ticked};
/// use relq_core::{Error, NewJob};
///
/// /// Pushes a job for each schedule whose next tick, which `next` computes, is due.
/// async fn push_due(
///     queue: &dyn ScheduleQueue,
///     next: impl Fn(&relq_core::schedule::Schedule) -> relq_core::environment::Timestamp,
/// ) -> Result<(), Error> {
///     let found = queue.schedules().await?;
///     for schedule in &found.schedules {
///         let tick = Tick::of(schedule, next(schedule));
///         if tick.at > found.now {
///             continue;
///         }
///         match queue.push_tick(&tick, NewJob::new("report")).await? {
///             Ticked::Pushed(_) => println!("{} at {:?}", tick.name, tick.at),
///             Ticked::NotLater => println!("another scheduler has pushed it"),
///             Ticked::NotDue(_) | Ticked::Changed => println!("look again"),
///         }
///     }
///     Ok(())
/// }
/// ```
#[async_trait]
pub trait ScheduleQueue: ReliableQueue {
    /// Stores a schedule. Its last tick is the present, by the store's clock, so that
    /// earlier ticks are not pushed. If the queue has a schedule of this name, its
    /// definition is replaced, and again earlier ticks are not pushed; the same
    /// definition changes nothing. So each process may store its schedules whenever it
    /// starts. A last tick that is later than the present, because the store's clock was
    /// set back, stays: the ticks up to it were pushed.
    ///
    /// # Errors
    /// [`Error::Invalid`] for a definition of more than [`MAX_DEFINITION`] bytes.
    async fn put_schedule(
        &self,
        name: &ScheduleName,
        definition: &[u8],
    ) -> Result<ScheduleStored, Error>;

    /// Removes a schedule. Returns whether there was one. Its jobs stay in the queue, and
    /// a scheduler that still knows it pushes no more.
    async fn remove_schedule(&self, name: &ScheduleName) -> Result<bool, Error>;

    /// All schedules of the queue, in the order of their names, and the store's time.
    ///
    /// They are read page by page: one that is stored or removed meanwhile may be
    /// missing or present. An entry that is not a schedule is named in
    /// [`Schedules::unreadable`], and is not an error.
    async fn schedules(&self) -> Result<Schedules, Error>;

    /// Pushes the job of a tick if the tick is later than the last tick of the schedule,
    /// is due by the store's clock, and belongs to the schedule's present definition.
    /// The job is stored and the tick recorded in one step, or neither (R28).
    ///
    /// If the job is a duplicate (R4, R16), for example because the job of an earlier
    /// tick still holds its unique key, the tick is recorded and nothing is stored. The
    /// call may be repeated: after an error whose effect is unknown, the second call
    /// returns [`Ticked::NotLater`] if the first one pushed.
    ///
    /// # Errors
    /// The errors of [`ReliableQueue::push`].
    async fn push_tick(&self, tick: &Tick, job: NewJob) -> Result<Ticked, Error>;
}

/// The largest definition of a schedule, in bytes.
pub const MAX_DEFINITION: usize = 64 * 1024;

/// A stored schedule.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Schedule {
    /// The name of the schedule.
    pub name: ScheduleName,
    /// When the schedule ticks, and which job it pushes. The store does not
    /// read these bytes.
    pub definition: Bytes,
    /// The last tick that was recorded since the schedule was stored or last changed. If
    /// there is none, the time of that.
    pub last_tick: Timestamp,
}

impl Schedule {
    /// A schedule as a store returns it.
    pub fn new(name: ScheduleName, definition: Bytes, last_tick: Timestamp) -> Self {
        Self { name, definition, last_tick }
    }
}

/// The schedules of a queue at a time.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Schedules {
    /// The time by the store's clock, as well as the client knows it. A scheduler counts
    /// from it, so that a wrong clock of its machine does not matter (R18).
    pub now: Timestamp,
    /// The schedules, in the order of their names.
    pub schedules: Vec<Schedule>,
    /// The entries among the stored schedules that are not schedules: for each the name,
    /// in quotes, and the reason. They are damaged, or another client wrote them. No
    /// scheduler pushes by them.
    pub unreadable: Vec<String>,
}

impl Schedules {
    /// The schedules of a queue, in any order, and the time of its store.
    pub fn new(now: Timestamp, mut schedules: Vec<Schedule>) -> Self {
        schedules.sort_by(|one, other| one.name.cmp(&other.name));
        schedules.dedup_by(|later, first| later.name == first.name);
        Self { now, schedules, unreadable: Vec::new() }
    }

    /// Adds the entries that are not schedules, each as text, in any order.
    #[must_use]
    pub fn with_unreadable(mut self, mut entries: Vec<String>) -> Self {
        entries.sort();
        entries.dedup();
        self.unreadable = entries;
        self
    }
}

/// A moment at which a schedule pushes a job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Tick {
    /// The name of the schedule.
    pub name: ScheduleName,
    /// The definition from which the scheduler computed the moment and the job.
    pub definition: Bytes,
    /// The moment.
    pub at: Timestamp,
}

impl Tick {
    /// The tick of a schedule at a moment.
    pub fn of(schedule: &Schedule, at: Timestamp) -> Self {
        let Schedule { name, definition, .. } = schedule.clone();
        Self { name, definition, at }
    }
}

/// The result of storing a schedule.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ScheduleStored {
    /// The schedule is new.
    Created,
    /// The queue had a schedule of this name with another definition, which was
    /// replaced.
    Replaced,
    /// The queue has this schedule with this definition already. Its last tick stays.
    Unchanged,
}

/// The result of pushing the job of a tick.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Ticked {
    /// The tick is the schedule's last one now, and its job was stored, or is a
    /// duplicate.
    Pushed(Pushed),
    /// Nothing was pushed: the last tick of the schedule is this one or a later one. A
    /// scheduler has pushed its job, perhaps by an earlier call of this one.
    NotLater,
    /// Nothing was pushed: by the store's clock the tick is due only after this time.
    NotDue(Duration),
    /// Nothing was pushed: the schedule was removed, or has another definition now.
    Changed,
}

impl Capabilities {
    /// Refuses a definition that is too large. Every backend calls this first in
    /// [`put_schedule`](ScheduleQueue::put_schedule).
    ///
    /// # Errors
    /// [`Error::Invalid`] if the definition is refused.
    pub fn check_schedule(&self, definition: &[u8]) -> Result<(), Error> {
        let bytes = definition.len();
        if bytes > MAX_DEFINITION {
            let reason = format!(
                "a definition of {bytes} bytes is more than the {MAX_DEFINITION} allowed"
            );
            return Err(self.invalid(Operation::PutSchedule, reason));
        }
        Ok(())
    }

    /// Why a queue has no schedules, in words for a message.
    pub fn why_no_schedules(&self) -> String {
        format!("{} has no schedules", self.subject())
    }

    /// Refuses the job of a tick that the backend cannot store. Every backend calls this
    /// first in [`push_tick`](ScheduleQueue::push_tick).
    ///
    /// # Errors
    /// The errors of [`check_push`](Self::check_push), and [`Error::Invalid`] for a job
    /// that follows another: at a later tick that job may be forgotten (R30).
    pub fn check_tick(&self, job: &NewJob) -> Result<(), Error> {
        if job.after.is_some() {
            let reason = "the job of a tick has no job to follow";
            return Err(self.invalid(Operation::PushTick, reason));
        }
        self.check_jobs(Operation::PushTick, std::slice::from_ref(job))
    }
}
