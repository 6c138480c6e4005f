//! A schedule: its moments, its policy for missed ticks, and the job of each tick.

use relq_core::{
    Error, NewJob, ReliableQueue,
    capabilities::Order,
    environment::Timestamp,
    error::{ErrorContext, Operation},
    schedule::{ScheduleName, ScheduleQueue, ScheduleStored},
};

use crate::{
    InvalidSpec, Missed, SCHEDULE_HEADER, SCHEDULED_FOR_HEADER, Times,
    UnreadableDefinition, definition, header::rfc_3339,
};

/// A schedule: when it ticks, the job that each tick pushes, and what becomes of ticks
/// that were missed.
///
/// ```
/// use relq_core::{NewJob, Priority, ReliableQueue};
/// use relq_schedule::{Cron, Missed, ScheduleName, ScheduleSpec};
///
/// async fn store(
///     queue: &dyn ReliableQueue,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let at_three = Cron::new("0 3 * * *")?.zone("Europe/Berlin")?;
///     let job = NewJob::new("nightly report").priority(Priority::LOWEST);
///     let nightly = ScheduleSpec::new(at_three, job)?.missed(Missed::Last);
///     nightly.put(queue, &ScheduleName::new("nightly")?).await?;
///     Ok(())
/// }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct ScheduleSpec {
    times: Times,
    missed: Missed,
    job: NewJob,
}

impl ScheduleSpec {
    /// A schedule that pushes `job` at each of `times`, such as a [`Cron`](crate::Cron)
    /// or an [`Every`](crate::Every). Of the ticks that were missed, the last is pushed.
    ///
    /// The job may have any option but an id. If it has a unique key, a tick pushes
    /// nothing while the job of an earlier one is unfinished.
    ///
    /// # Errors
    /// [`InvalidSpec::JobId`] for a job with an id, and [`InvalidSpec::JobToFollow`] for
    /// one that follows another.
    pub fn new(
        times: impl Into<Times>,
        job: impl Into<NewJob>,
    ) -> Result<Self, InvalidSpec> {
        let (times, job) = (times.into(), job.into());
        if job.id.is_some() {
            return Err(InvalidSpec::JobId);
        }
        if job.after.is_some() {
            return Err(InvalidSpec::JobToFollow);
        }
        Ok(Self { times, missed: Missed::default(), job })
    }

    /// Sets what becomes of ticks that were missed.
    #[must_use]
    pub fn missed(mut self, missed: Missed) -> Self {
        self.missed = missed;
        self
    }

    /// When the schedule ticks.
    pub fn times(&self) -> &Times {
        &self.times
    }

    /// How schedulers treat ticks that were missed.
    pub fn missed_ticks(&self) -> Missed {
        self.missed
    }

    /// The job of each tick, without the headers that name the tick.
    pub fn job(&self) -> &NewJob {
        &self.job
    }

    /// The first tick after `after`. `None` if there is none in the range of the
    /// calendar.
    pub fn next_after(&self, after: Timestamp) -> Option<Timestamp> {
        self.times.next_after(after)
    }

    /// The job of the tick at a moment, with the headers [`SCHEDULE_HEADER`] and
    /// [`SCHEDULED_FOR_HEADER`].
    pub fn job_of_tick(&self, name: &ScheduleName, at: Timestamp) -> NewJob {
        let job = self.job.clone().header(SCHEDULE_HEADER, name.as_str());
        job.header(SCHEDULED_FOR_HEADER, rfc_3339(at))
    }

    /// The definition that a store keeps: JSON, and the same bytes for the same
    /// schedule. All times of the job, such as its delay and its lease, are cut to whole
    /// milliseconds.
    pub fn to_definition(&self) -> Vec<u8> {
        definition::write(self)
    }

    /// Reads the definition of a stored schedule.
    ///
    /// ```
    /// use relq_core::{Error, schedule::ScheduleQueue};
    /// use relq_schedule::ScheduleSpec;
    ///
    /// /// Prints when each schedule of a queue ticks next.
    /// async fn list(queue: &dyn ScheduleQueue) -> Result<(), Error> {
    ///     let found = queue.schedules().await?;
    ///     for schedule in &found.schedules {
    ///         let name = &schedule.name;
    ///         match ScheduleSpec::from_definition(&schedule.definition) {
    ///             Ok(spec) => {
    ///                 let next = spec.next_after(schedule.last_tick);
    ///                 println!("{name}: {}, next at {next:?}", spec.times());
    ///             }
    ///             Err(error) => println!("{name}: {error}"),
    ///         }
    ///     }
    ///     Ok(())
    /// }
    /// ```
    ///
    /// # Errors
    /// [`UnreadableDefinition`] for a definition of a newer version, with an unknown
    /// field, or with a time zone that this machine does not know.
    pub fn from_definition(definition: &[u8]) -> Result<Self, UnreadableDefinition> {
        definition::read(definition)
    }

    /// Stores the schedule under a name, in place of one with another definition. The
    /// same definition changes nothing, so each process may call it whenever it starts.
    /// Ticks before the call are never pushed.
    ///
    /// # Errors
    /// [`Error::Unsupported`] if the backend has no schedules, or for an option of the
    /// job that it does not support; [`Error::Invalid`] for a job or a definition that
    /// breaks a limit. In all these cases nothing was sent. Also the errors of
    /// [`put_schedule`](ScheduleQueue::put_schedule).
    pub async fn put(
        &self,
        queue: &dyn ReliableQueue,
        name: &ScheduleName,
    ) -> Result<ScheduleStored, Error> {
        let capabilities = queue.capabilities();
        let schedules = schedules_of(queue, Operation::PutSchedule)?;
        // Refuse the job now, and not at the first tick in the middle of the night.
        capabilities.check_tick(&self.job_of_tick(name, Timestamp::from_unix_ms(0)))?;
        schedules.put_schedule(name, &self.to_definition()).await
    }
}

/// The schedule calls of a queue.
///
/// # Errors
/// [`Error::Unsupported`] if the queue has no schedules.
pub(crate) fn schedules_of(
    queue: &dyn ReliableQueue,
    operation: Operation,
) -> Result<&dyn ScheduleQueue, Error> {
    queue.schedule_queue().ok_or_else(|| {
        let capabilities = queue.capabilities();
        let at = ErrorContext { backend: capabilities.backend, operation };
        // The error names the backend of the parts, which does have schedules. So it must
        // say that a queue of several parts has none.
        let option = match capabilities.order {
            Order::ByPart => "a schedule of a queue of several partitions",
            _ => "a schedule",
        };
        Error::Unsupported { at, option }
    })
}
