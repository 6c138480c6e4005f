//! One look of a scheduler: it reads the schedules, pushes the ticks that are due, and
//! finds out when the next one is.
//!
//! A scheduler computes from the stored last tick, which every push moves on, so it has
//! no memory that could be wrong. Another scheduler may push the same tick at the same
//! time, or an operator may change the schedule: the store decides in one step (R28),
//! and its reply says what happened.
//!
//! ```text
//! reply     what it means                         what the scheduler does
//! Pushed    the job of this tick is stored        goes on with the next tick
//! NotLater  another scheduler pushed it           the same
//! NotDue    its idea of the time was too late     waits until the tick is due
//! Changed   the schedule changed or is removed    reads the schedules again
//! ```

use std::{sync::Arc, time::Duration};

use relq_core::{
    Error, ReliableQueue,
    environment::{Environment, Timestamp},
    error::{ErrorContext, Operation},
    schedule::{Schedule, ScheduleQueue, Tick, Ticked},
};

use crate::{ScheduleSpec, SchedulerProgress, known::Known};

/// How long to wait before the schedules are read again after one was changed during a
/// look.
const AFTER_CHANGE: Duration = Duration::from_millis(100);

#[derive(Debug)]
pub(crate) struct Looks {
    pub(crate) queue: Arc<dyn ReliableQueue>,
    pub(crate) environment: Environment,
    pub(crate) look_every: Duration,
    pub(crate) progress: SchedulerProgress,
    pub(crate) known: Known,
}

/// The store's time: its value when the schedules were read, and when that was by the
/// steady clock of the process.
#[derive(Debug, Clone, Copy)]
struct StoreTime {
    read: Timestamp,
    read_at: Duration,
}

impl Looks {
    /// Pushes the ticks that are due. Returns how long until the next look.
    ///
    /// # Errors
    /// The store failed. A failure that may be of one schedule alone does not keep the
    /// others from ticking: it is returned after their turns. A job that the store refuses
    /// is logged instead.
    pub(crate) async fn look(&mut self) -> Result<Duration, Error> {
        let queue = Arc::clone(&self.queue);
        let schedules = schedules_of(&*queue)?;
        let found = schedules.schedules().await?;
        let time = StoreTime { read: found.now, read_at: self.elapsed() };
        self.known.keep_only(&found.schedules);
        let mut look_at = self.elapsed().saturating_add(self.look_every);
        let mut failed = None;
        for schedule in &found.schedules {
            let Some(spec) = self.known.read(schedule) else { continue };
            match self.push_due(schedules, schedule, &spec, time).await {
                Ok(pause) => {
                    look_at = look_at.min(self.elapsed().saturating_add(pause));
                }
                Err(error) if is_of_the_store(&error) => return Err(error),
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        match failed {
            Some(error) => Err(error),
            None => Ok(look_at.saturating_sub(self.elapsed())),
        }
    }

    /// Pushes the due ticks of one schedule. Returns how long until its next one.
    async fn push_due(
        &mut self,
        queue: &dyn ScheduleQueue,
        schedule: &Schedule,
        spec: &ScheduleSpec,
        time: StoreTime,
    ) -> Result<Duration, Error> {
        let due = spec.due(schedule.last_tick, time.now(self.elapsed()));
        for at in due.ticks {
            let job = spec.job_of_tick(&schedule.name, at);
            let ticked = match queue.push_tick(&Tick::of(schedule, at), job).await {
                Ok(ticked) => ticked,
                Err(error) if is_refusal(&error) => {
                    self.progress.call_failed();
                    self.known.refused(schedule, &error);
                    return Ok(self.look_every);
                }
                Err(error) => return Err(error),
            };
            self.progress.ticked(&ticked);
            tracing::debug!(schedule = %schedule.name, ?at, ?ticked, "a tick");
            match ticked {
                Ticked::Pushed(_) | Ticked::NotLater => {}
                Ticked::NotDue(wait) => return Ok(wait),
                Ticked::Changed => return Ok(AFTER_CHANGE),
            }
        }
        let now = time.now(self.elapsed());
        Ok(due.next.map_or(self.look_every, |next| next.since(now)))
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

/// The schedule calls of a queue, which has been asked for them before.
fn schedules_of(queue: &dyn ReliableQueue) -> Result<&dyn ScheduleQueue, Error> {
    queue.schedule_queue().ok_or_else(|| {
        let backend = queue.capabilities().backend;
        let at = ErrorContext { backend, operation: Operation::ReadSchedules };
        Error::Unsupported { at, option: "a schedule" }
    })
}

/// Whether the call for another schedule would fail in the same way.
fn is_of_the_store(error: &Error) -> bool {
    use Error::{NotReplicated, Unreadable, Unusable};
    !matches!(error, NotReplicated { .. } | Unreadable { .. } | Unusable { .. })
}

/// Whether the store refuses this job and may accept others.
fn is_refusal(error: &Error) -> bool {
    matches!(error, Error::Invalid { .. } | Error::Unsupported { .. })
}
