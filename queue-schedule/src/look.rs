//! The looks of a scheduler: it reads the schedules at set intervals, pushes the ticks that
//! are due, and finds out when the next one is.
//!
//! Between two reads a scheduler computes from what it read and from the ticks since,
//! which may be out of date. Another scheduler may push the same tick at the same time, or
//! an operator may change the schedule: the store decides in one step (R28), and its reply
//! says what happened. The store does not say that a tick was missed, so a tick is pushed
//! only soon after a read.
//!
//! ```text
//! reply     what it means                         what the scheduler does
//! Pushed    the job of this tick is stored        goes on with the next tick
//! NotLater  another scheduler pushed it           the same
//! NotDue    the store's clock is not so late      reads the schedules when it is due
//! Changed   the schedule changed or is removed    reads the schedules again
//! ```
//!
//! If too few replicas confirm a tick, its reply is not known. Most likely it was `Pushed`, so
//! the scheduler goes on with the next tick, and reads the schedules after the look.
//!
//! All schedulers wake up for the same tick. Each begins with another schedule, so that
//! they share the work of a moment at which many schedules tick.

use std::{sync::Arc, time::Duration};

use relq_core::{
    Error, ReliableQueue,
    environment::{Environment, Timestamp},
    error::Operation,
    schedule::{ScheduleName, ScheduleQueue, Tick, Ticked},
};

use crate::{
    Due, MAX_MISSED, SchedulerProgress,
    known::{DueSchedule, Known},
    spec::schedules_of,
};

/// How long to wait before the schedules are read again after one was changed during a
/// look.
const AFTER_CHANGE: Duration = Duration::from_millis(100);

/// After how long the schedules are read again when a tick of one of them has failed.
const AFTER_FAILURE: Duration = Duration::from_secs(5);

/// How long after a read a tick is pushed without another one. Meanwhile the steady clock may
/// have stood still, because the machine was suspended, or the store's clock may have been set
/// forward. Then a tick that seems to be on time may be a missed one.
const TRUSTED_FOR: Duration = Duration::from_secs(5);

#[derive(Debug)]
pub(crate) struct Looks {
    pub(crate) queue: Arc<dyn ReliableQueue>,
    pub(crate) environment: Environment,
    pub(crate) progress: SchedulerProgress,
    pub(crate) known: Known,
    look_every: Duration,
    /// The time of the last read. `None` before the first one, and after an error.
    time: Option<StoreTime>,
    /// When to read the schedules again, by the steady clock.
    read_next: Duration,
}

/// The store's time: its value when the schedules were read, and when that was by the
/// steady clock of the process.
#[derive(Debug, Clone, Copy)]
struct StoreTime {
    read: Timestamp,
    read_at: Duration,
}

impl Looks {
    pub(crate) fn new(
        queue: Arc<dyn ReliableQueue>,
        environment: Environment,
        look_every: Duration,
        progress: SchedulerProgress,
    ) -> Self {
        let (known, time, read_next) = (Known::default(), None, Duration::ZERO);
        Self { queue, environment, progress, known, look_every, time, read_next }
    }

    /// Pushes the ticks that are due. Returns how long until the next look.
    ///
    /// # Errors
    /// The store failed. After an error the next look reads the schedules again. An error
    /// that may be of one schedule alone is logged instead, once, as a job that the store
    /// refuses: it must not delay the others, nor hide that the store fails later.
    pub(crate) async fn look(&mut self) -> Result<Duration, Error> {
        let queue = Arc::clone(&self.queue);
        let schedules = schedules_of(&*queue, Operation::ReadSchedules)?;
        let time = match self.time.take().filter(|time| self.is_trusted(*time)) {
            Some(time) => time,
            None => self.read(schedules).await?,
        };
        self.push_due(schedules, time.now(self.elapsed())).await?;
        self.time = Some(time);
        let until_read = self.read_next.saturating_sub(self.elapsed());
        let now = time.now(self.elapsed());
        let until_tick = self.known.next().map(|next| next.since(now));
        Ok(until_tick.map_or(until_read, |until_tick| until_tick.min(until_read)))
    }

    /// Whether the look may use this time of the last read.
    fn is_trusted(&self, time: StoreTime) -> bool {
        let elapsed = self.elapsed();
        let is_due = self.known.next().is_some_and(|next| next <= time.now(elapsed));
        let age = elapsed.saturating_sub(time.read_at);
        elapsed < self.read_next && (age < TRUSTED_FOR || !is_due)
    }

    async fn read(&mut self, queue: &dyn ScheduleQueue) -> Result<StoreTime, Error> {
        let found = queue.schedules().await?;
        let time = StoreTime { read: found.now, read_at: self.elapsed() };
        self.read_next = time.read_at.saturating_add(self.look_every);
        self.known.update(found);
        Ok(time)
    }

    /// Pushes the ticks that are due at the time `now` of the store. By that time a tick
    /// is missed or not, also if the turn of its schedule comes much later.
    async fn push_due(
        &mut self,
        queue: &dyn ScheduleQueue,
        now: Timestamp,
    ) -> Result<(), Error> {
        let mut due = self.known.due(now);
        let mut random = [0; 4];
        self.environment.random().fill(&mut random);
        let first = u32::from_le_bytes(random) as usize % due.len().max(1);
        due.rotate_left(first);
        for one in due {
            match self.turn(queue, &one, now).await {
                Ok(()) => {}
                Err(error) if is_of_the_store(&error) => return Err(error),
                Err(error) => {
                    let name = &one.schedule.name;
                    self.progress.call_failed();
                    self.known.failed(name, "a tick of a schedule failed", &error);
                    self.read_in(name, AFTER_FAILURE);
                }
            }
        }
        Ok(())
    }

    /// Pushes the due ticks of one schedule, and sets when it has its next turn.
    async fn turn(
        &mut self,
        queue: &dyn ScheduleQueue,
        one: &DueSchedule,
        now: Timestamp,
    ) -> Result<(), Error> {
        let name = &one.schedule.name;
        let mut due = one.spec.due(one.schedule.last_tick, now);
        for at in std::mem::take(&mut due.ticks) {
            let ticked = match self.push_tick(queue, one, at).await {
                Err(error @ Error::NotReplicated { .. }) => {
                    self.not_replicated(name, &error);
                    log_left_out(name, &mut due);
                    continue;
                }
                ticked => ticked?,
            };
            let Some(ticked) = ticked else {
                self.known.next_is(name, None);
                return Ok(());
            };
            match ticked {
                Ticked::Pushed(_) => log_left_out(name, &mut due),
                // Another scheduler has pushed the tick, and has logged the ticks left out.
                Ticked::NotLater => due.left_out = 0,
                Ticked::NotDue(wait) => {
                    self.read_in(name, wait);
                    return Ok(());
                }
                Ticked::Changed => {
                    self.read_in(name, AFTER_CHANGE);
                    return Ok(());
                }
            }
            self.known.ticked(name, at);
        }
        self.known.next_is(name, due.next);
        Ok(())
    }

    /// Pushes a tick. Returns `None` if the store refuses its job.
    async fn push_tick(
        &mut self,
        queue: &dyn ScheduleQueue,
        DueSchedule { schedule, spec }: &DueSchedule,
        at: Timestamp,
    ) -> Result<Option<Ticked>, Error> {
        let (name, job) = (&schedule.name, spec.job_of_tick(&schedule.name, at));
        match queue.push_tick(&Tick::of(schedule, at), job).await {
            Ok(ticked) => {
                self.progress.ticked(&ticked);
                tracing::debug!(schedule = %name, ?at, ?ticked, "a tick");
                Ok(Some(ticked))
            }
            Err(error) if is_refusal(&error) => {
                self.progress.call_failed();
                self.known.failed(name, "the job of a schedule is refused", &error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }

    /// Counts a tick that too few replicas have. The next look reads the schedules, which
    /// shows whether the tick was recorded.
    fn not_replicated(&mut self, name: &ScheduleName, error: &Error) {
        self.progress.not_replicated();
        self.known.failed(name, "a tick of a schedule is not replicated", error);
        self.read_next = self.elapsed();
    }

    /// Ends a turn: the schedule has its next one after the schedules are read again,
    /// which is in this time.
    fn read_in(&mut self, name: &ScheduleName, pause: Duration) {
        self.known.next_is(name, None);
        self.read_next = self.read_next.min(self.elapsed().saturating_add(pause));
    }

    fn elapsed(&self) -> Duration {
        self.environment.clock().elapsed()
    }
}

impl StoreTime {
    /// The store's time now. Never the time of this machine's wall clock, which may be
    /// wrong (R18).
    fn now(self, elapsed: Duration) -> Timestamp {
        self.read.plus(elapsed.saturating_sub(self.read_at))
    }
}

/// Whether the call for another schedule would fail in the same way.
fn is_of_the_store(error: &Error) -> bool {
    !matches!(error, Error::Unreadable { .. } | Error::Unusable { .. })
}

/// Whether the store refuses this job and may accept others.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Invalid { .. } | Error::Unsupported { .. })
}

/// Logs how many missed ticks are never pushed, when the first tick after them is.
fn log_left_out(schedule: &ScheduleName, due: &mut Due) {
    let left_out = std::mem::take(&mut due.left_out);
    if left_out > 0 {
        tracing::warn!(
            %schedule,
            left_out,
            "of the missed ticks only the newest {MAX_MISSED} are pushed"
        );
    }
}
