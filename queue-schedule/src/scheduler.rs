//! The public type of the scheduler, and the methods that set and run it.

use std::{convert::Infallible, future::Future, sync::Arc, time::Duration};

use relq_core::{
    Error, ReliableQueue,
    environment::Environment,
    schedule::{ScheduleName, ScheduleStored},
};

use crate::{
    MISSED_AFTER, ScheduleSpec, SchedulerError, SchedulerProgress, SchedulerSummary,
    backoff::Backoff, look::Looks, shutdown::Requests,
};

/// The default of [`Scheduler::look_every`].
pub const DEFAULT_LOOK_EVERY: Duration = Duration::from_secs(30);

/// The default of [`Scheduler::give_up_after`], which is that of a worker, too.
pub const DEFAULT_GIVE_UP_AFTER: Duration = Duration::from_secs(60);

/// Pushes the jobs of a queue's schedules when they are due.
///
/// Any number of schedulers run on a queue at the same time, in any processes, usually
/// one beside each worker. There is no leader: the store records each tick in the step
/// that pushes its job, so that each tick is pushed once (R28).
///
/// ```
/// use std::sync::Arc;
/// use relq_core::{NewJob, ReliableQueue};
/// use relq_schedule::{Cron, ScheduleName, ScheduleSpec, Scheduler};
///
/// async fn serve(
///     queue: Arc<dyn ReliableQueue>,
/// ) -> Result<(), Box<dyn std::error::Error>> {
///     let at_three = Cron::new("0 3 * * *")?.zone("Europe/Berlin")?;
///     let nightly = ScheduleSpec::new(at_three, NewJob::new("nightly report"))?;
///     let scheduler = Scheduler::new(queue)
///         .schedule(ScheduleName::new("nightly")?, nightly) // stored at the start
///         .handle_signals();
///     let summary = scheduler.run().await?;
///     println!("{} ticks", summary.pushed);
///     Ok(())
/// }
/// ```
#[derive(Debug)]
pub struct Scheduler {
    queue: Arc<dyn ReliableQueue>,
    schedules: Vec<(ScheduleName, ScheduleSpec)>,
    look_every: Duration,
    give_up_after: Duration,
    environment: Environment,
    requests: Requests,
    progress: SchedulerProgress,
}

impl Scheduler {
    /// A scheduler for all schedules of a queue, with default settings.
    pub fn new(queue: Arc<dyn ReliableQueue>) -> Self {
        Self {
            queue,
            schedules: Vec::new(),
            look_every: DEFAULT_LOOK_EVERY,
            give_up_after: DEFAULT_GIVE_UP_AFTER,
            environment: Environment::default(),
            requests: Requests::default(),
            progress: SchedulerProgress::default(),
        }
    }

    /// Stores a schedule when the scheduler starts, as [`ScheduleSpec::put`] does. May be
    /// called repeatedly. Every replica of an application may store its schedules.
    ///
    /// While replicas of two releases run, the one that starts last wins. A schedule
    /// that a release no longer has stays in the queue until it is
    /// [removed](relq_core::schedule::ScheduleQueue::remove_schedule).
    #[must_use]
    pub fn schedule(mut self, name: ScheduleName, spec: ScheduleSpec) -> Self {
        self.schedules.push((name, spec));
        self
    }

    /// Sets the longest time between two looks at the schedules. The default is 30 seconds,
    /// which is also the maximum. While the store works, the scheduler finds a schedule that
    /// another process has stored within this time and that of one look.
    ///
    /// Zero, and more than half of [`MISSED_AFTER`], are refused when the scheduler starts.
    /// With a longer interval and a slow look, the first ticks of a new schedule would count
    /// as missed before the scheduler finds it.
    #[must_use]
    pub fn look_every(mut self, interval: Duration) -> Self {
        self.look_every = interval;
        self
    }

    /// Sets how long the scheduler continues after an error that only a person can repair
    /// ([`Error::needs_help`]): revoked permissions, a replaced file, a replica that is not
    /// promoted. The default is 60 seconds, as for a worker. Then the scheduler ends with
    /// that error. A server of the wrong kind ends it at once.
    ///
    /// A look that works begins the time anew, also if it finds nothing to push.
    #[must_use]
    pub fn give_up_after(mut self, time: Duration) -> Self {
        self.give_up_after = time;
        self
    }

    /// Sets the sources of time and randomness. Of the clock, the scheduler uses the
    /// steady time and the sleep. It learns the time of day from the store (R18).
    #[must_use]
    pub fn environment(mut self, environment: Environment) -> Self {
        self.environment = environment;
        self
    }

    /// Stops when `request` completes. May be called repeatedly; the first request to
    /// complete counts. A tick that is being pushed is pushed or not: if not, another
    /// scheduler or the next one pushes it.
    #[must_use]
    pub fn stop_on(
        mut self,
        request: impl Future<Output = ()> + Send + 'static,
    ) -> Self {
        self.requests.stop_on(request);
        self
    }

    /// Takes over SIGINT and SIGTERM: the first signal stops the scheduler. From then on
    /// these signals do not kill the process, even after the scheduler has ended. A
    /// worker in the same process may take them over, too: both stop.
    #[must_use]
    pub fn handle_signals(mut self) -> Self {
        self.requests.handle_signals();
        self
    }

    /// The counts of the scheduler, which can be read while it runs.
    pub fn progress(&self) -> SchedulerProgress {
        self.progress.clone()
    }

    /// Pushes the jobs of due ticks until asked to stop, and returns a summary.
    ///
    /// A store that is unavailable, restarting or full does not end the scheduler. It tries
    /// again with growing pauses, up to five seconds, and logs this through `tracing`. A
    /// schedule whose definition it cannot read, and one whose job the store refuses, are
    /// logged, and the others go on. A schedule that is gone is logged, and so is one whose
    /// last tick is in the future of the store's clock.
    ///
    /// The future may be dropped at any time. With [`handle_signals`] it must run on a
    /// tokio runtime.
    ///
    /// [`handle_signals`]: Self::handle_signals
    ///
    /// # Errors
    /// [`SchedulerError::NoSchedules`] and [`SchedulerError::LookEvery`] before anything
    /// is sent, [`SchedulerError::Refused`] for a schedule that the backend cannot store,
    /// and [`SchedulerError::Signals`]. [`SchedulerError::Store`] when the store refuses the
    /// scheduler and a retry cannot help: at once for the first call, and for a later call
    /// after [`give_up_after`](Self::give_up_after).
    pub async fn run(self) -> Result<SchedulerSummary, SchedulerError> {
        if self.queue.schedule_queue().is_none() {
            let why = self.queue.capabilities().why_no_schedules();
            return Err(SchedulerError::NoSchedules(why));
        }
        if self.look_every.is_zero() || self.look_every > MISSED_AFTER / 2 {
            return Err(SchedulerError::LookEvery);
        }
        let Self { queue, schedules, look_every, give_up_after, .. } = self;
        let (environment, progress) = (self.environment, self.progress);
        let stop = self.requests.listen().map_err(SchedulerError::Signals)?;
        let summary = progress.clone();
        let running = Running {
            backoff: Backoff::new(environment.clone(), give_up_after),
            looks: Looks::new(queue, environment, look_every, progress),
        };
        tokio::select! {
            biased;
            () = stop => Ok(summary.summary()),
            ended = running.run(schedules) => match ended {
                Err(error) => Err(error),
                Ok(never) => match never {},
            },
        }
    }
}

struct Running {
    looks: Looks,
    backoff: Backoff,
}

impl Running {
    async fn run(
        mut self,
        schedules: Vec<(ScheduleName, ScheduleSpec)>,
    ) -> Result<Infallible, SchedulerError> {
        for (name, spec) in schedules {
            self.put(name, &spec).await?;
        }
        loop {
            let pause = match self.looks.look().await {
                Ok(pause) => {
                    self.backoff.is_over();
                    pause
                }
                Err(error) => self.failed(error)?,
            };
            self.looks.environment.clock().sleep(pause).await;
        }
    }

    /// Stores a schedule, and tries again while the store fails. A call that too few
    /// replicas confirm is done: a repetition would wait for the replicas as long as one
    /// is missing.
    async fn put(
        &mut self,
        name: ScheduleName,
        spec: &ScheduleSpec,
    ) -> Result<(), SchedulerError> {
        loop {
            let pause = match spec.put(&*self.looks.queue, &name).await {
                Ok(stored) => {
                    self.backoff.is_over();
                    log_stored(&name, stored);
                    self.looks.known.stored(&name, spec);
                    return Ok(());
                }
                Err(error @ Error::NotReplicated { .. }) => {
                    self.backoff.is_over();
                    self.looks.progress.call_failed();
                    let error = error.full_message();
                    tracing::warn!(schedule = %name, error, "a schedule is not replicated");
                    self.looks.known.stored(&name, spec);
                    return Ok(());
                }
                Err(source @ (Error::Invalid { .. } | Error::Unsupported { .. })) => {
                    return Err(SchedulerError::Refused { name, source });
                }
                Err(error) => self.failed(error)?,
            };
            self.looks.environment.clock().sleep(pause).await;
        }
    }

    fn failed(&mut self, error: Error) -> Result<Duration, SchedulerError> {
        self.looks.progress.call_failed();
        self.backoff.failed(error).map_err(SchedulerError::Store)
    }
}

fn log_stored(schedule: &ScheduleName, stored: ScheduleStored) {
    if stored != ScheduleStored::Unchanged {
        tracing::info!(%schedule, ?stored, "a schedule is stored");
    }
}
